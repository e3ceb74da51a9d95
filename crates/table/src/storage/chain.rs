//! Chains of pages, for values that are too long for a node.
//!
//! ```text
//!   4 u8 | 0 | length u16 | next page u32, 0 for none | bytes
//! ```
//!
//! A chain is written once and never changed, except that a vacuum may move its pages. The owner of
//! its first page frees it once no snapshot can see the value any more.

use cairn_pool::Changed;
use cairn_vfs::ensure;

use super::change::Change;
use super::ops::Op;
use super::source::Source;
use super::space::Space;
use crate::Result;

const KIND: u8 = 4;
const HEADER: usize = 8;
/// The header ends with the next page. A page is long enough for it, and its bytes have a length of
/// 16 bits.
const _: () = assert!(HEADER == 4 + size_of::<u32>() && (64 << 10) - HEADER <= u16::MAX as usize);

pub(crate) fn put(payload: &mut [u8], next: u32, bytes: &[u8]) -> Result<(), Changed> {
    debug_assert!(u16::try_from(bytes.len()).is_ok(), "a page of a chain has {} bytes", bytes.len());
    payload.fill(0);
    *payload.first_mut().ok_or(Changed)? = KIND;
    payload.get_mut(2..4).ok_or(Changed)?.copy_from_slice(&(bytes.len() as u16).to_le_bytes());
    payload.get_mut(4..HEADER).ok_or(Changed)?.copy_from_slice(&next.to_le_bytes());
    payload.get_mut(HEADER..HEADER + bytes.len()).ok_or(Changed)?.copy_from_slice(bytes);
    debug_assert!(
        payload.u16(2) == Ok(bytes.len() as u16) && payload.u32(4) == Ok(next),
        "a page of a chain is not read as it was written"
    );
    Ok(())
}

/// Returns the next page, and the location of the bytes.
fn get(space: &Space, number: u32, page: &[u8]) -> Result<(u32, std::ops::Range<usize>)> {
    let found = (page.first(), page.u16(2), page.u32(4));
    let (Some(&KIND), Ok(len), Ok(next)) = found else {
        return Err(
            space.damaged(number, format!("it is of kind {:?}, expected a page of a long value", found.0))
        );
    };
    let end = HEADER + usize::from(len);
    if end > page.len() || len == 0 && next != 0 {
        return Err(space.damaged(number, format!("it has {len} bytes of a long value")));
    }
    Ok((next, HEADER..end))
}

/// Writes a value and returns its first page. Cost: one log record per page. Errors: the pool's and
/// the log's; a vacuum finds the pages written before an error.
pub(crate) fn write_chain(space: &Space, bytes: &[u8]) -> Result<u32> {
    let mut next = 0;
    // From the last page to the first, because each page names the next one.
    for part in bytes.rchunks(space.payload - HEADER) {
        let mut change = Change::default();
        let pages = space.allocate(&mut change, 1)?;
        let Some(&(page, at)) = pages.first() else { return Err(crate::Error::NoPages) };
        ensure!(page != next, "page {page} of a chain would be followed by itself");
        change.plan(at, Op::Chain { next, bytes: part });
        change.commit(&*space.log, space.path())?;
        next = page;
    }
    ensure!((next == 0) == bytes.is_empty(), "{} bytes have a chain from page {next}", bytes.len());
    Ok(next)
}

/// Appends a value of `len` bytes to a buffer. Errors:
/// [`Error::Corruption`](crate::Error::Corruption) if its length differs; the pool's.
pub(crate) fn read_chain(space: &Space, first: u32, len: usize, to: &mut Vec<u8>) -> Result<()> {
    let (start, mut next) = (to.len(), first);
    while next != 0 {
        let page = space.file.read(next)?;
        let (after, bytes) = get(space, next, &page)?;
        to.extend(page.get(bytes).unwrap_or_default());
        if to.len() - start > len {
            return Err(space.damaged(next, format!("a long value has more than its {len} bytes")));
        }
        next = after;
    }
    if to.len() - start == len {
        return Ok(());
    }
    Err(space.damaged(first, format!("a long value has {} of its {len} bytes", to.len() - start)))
}

/// Frees the pages of a value. `first` is updated to the first remaining page, also after an error.
/// Errors: the pool's and the log's; a vacuum finds pages that were not freed.
pub(crate) fn free_chain(space: &Space, first: &mut u32) -> Result<()> {
    while *first != 0 {
        let page = space.file.write(*first)?;
        let (after, _) = get(space, *first, &page)?;
        let mut change = Change::default();
        let at = change.hold(page);
        space.release(&mut change, *first, at)?;
        change.commit(&*space.log, space.path())?;
        *first = after;
    }
    Ok(())
}

/// Passes the pages of a value to `each`, to count or move them. Errors:
/// [`Error::Corruption`](crate::Error::Corruption) if there are more than the file has; the pool's.
pub(crate) fn chain_pages(space: &Space, first: u32, mut each: impl FnMut(u32)) -> Result<()> {
    let most = space.pages()?;
    debug_assert!(most > 0, "a file without pages has a chain");
    let (mut next, mut count) = (first, 0u32);
    while next != 0 {
        if count == most {
            return Err(space.damaged(first, "the page chain of a long value has a cycle"));
        }
        each(next);
        count += 1;
        let page = space.file.read(next)?;
        next = get(space, next, &page)?.0;
    }
    Ok(())
}

/// Moves the pages of a value that are at or above `from` to free pages further towards the start,
/// one by one. It needs as many free pages as it moves, however many pages are below `from`
/// already. Returns the first page, and whether all pages were moved. The old pages are neither
/// changed nor freed, so the old first page still leads to the value until its owner refers to the
/// new one. The value must not be read or changed meanwhile.
///
/// Cost: one log record for each page that moves and for each one before it. Errors: as
/// [`chain_pages`]; the log's.
pub(crate) fn relocate_chain(space: &Space, mut first: u32, from: u32) -> Result<(u32, bool)> {
    let mut chain = Vec::new();
    chain_pages(space, first, |page| chain.push(page))?;
    let mut before = None;
    for old in chain {
        if old < from {
            before = Some(old);
            continue;
        }
        let moved = space.file.read(old)?.to_vec();
        let (next, bytes) = get(space, old, &moved)?;
        let leads =
            before.map(|page| space.file.read(page).map(|bytes| (page, bytes.to_vec()))).transpose()?;
        let mut change = Change::default();
        let leads = match &leads {
            Some((page, payload)) => {
                let (_, bytes) = get(space, *page, payload)?;
                let at = change.hold(space.file.write(*page)?);
                Some((at, payload.get(bytes).unwrap_or_default()))
            }
            None => None,
        };
        let Some(&(new, at)) = space.allocate(&mut change, 1)?.first() else { return Ok((first, false)) };
        if new > old {
            // Dropping the change undoes the allocation.
            return Ok((first, false));
        }
        ensure!(new < old, "page {old} of a chain moves to page {new}, which is not further in front");
        change.plan(at, Op::Chain { next, bytes: moved.get(bytes).unwrap_or_default() });
        match leads {
            Some((at, bytes)) => change.plan(at, Op::Chain { next: new, bytes }),
            None => first = new,
        }
        change.commit(&*space.log, space.path())?;
        before = Some(new);
    }
    Ok((first, true))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cairn_pool::{BackgroundWriter, FileOptions, Pool};
    use cairn_vfs::{ErrorKind, Fs, MemFs, OpenOptions};

    use super::*;
    use crate::storage::{Log, Unlogged};

    fn space() -> Space {
        let pool = Pool::builder().page_size(4096).frames(16).background_writer(BackgroundWriter::Off);
        let file = MemFs::new().open("db".as_ref(), OpenOptions::create()).unwrap();
        let file = pool.build().unwrap().open(file, FileOptions::new()).unwrap();
        let log: Arc<dyn Log> = Arc::new(Unlogged);
        Space::create(file, 4096, log).unwrap()
    }

    /// Goal: a cyclic chain is reported as corruption when it is read, counted or freed, and causes
    /// no endless loop. Method: the last page of three refers to the first one.
    #[test]
    fn cyclic_chain_is_corruption() {
        let space = space();
        let bytes = vec![7; 3 * 4_000];
        let first = write_chain(&space, &bytes).unwrap();
        let mut pages = Vec::new();
        chain_pages(&space, first, |page| pages.push(page)).unwrap();
        let last = *pages.last().unwrap();
        let mut change = Change::default();
        let at = change.hold(space.file.write(last).unwrap());
        change.plan(at, Op::Chain { next: first, bytes: b"round" });
        change.commit(&*space.log, space.path()).unwrap();
        let mut count = 0;
        let counted = chain_pages(&space, first, |_| {
            count += 1;
            assert!(count <= 100, "it goes round");
        });
        assert_eq!(counted.unwrap_err().kind(), ErrorKind::Corruption);
        let mut read = Vec::new();
        let error = read_chain(&space, first, bytes.len(), &mut read).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let mut left = first;
        assert_eq!(free_chain(&space, &mut left).unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(space.free_pages().unwrap() as usize, pages.len(), "each once");
    }
}
