//! Reads a trace: scans all intact blocks from the start, and merges their events by time. If the
//! recorder lowered the share of keys, only keys of the final share are returned.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cairn_vfs::{Advice, Fs, Map, OpenOptions};

use crate::error::{Error, Result};
use crate::event::Event;
use crate::format::{self, BLOCK_HEAD_BYTES, BLOCK_MAGIC, BlockHead, END_MAGIC, Header};
use crate::sample::Lowered;

mod filter;

use filter::Filter;

/// Clock steps below this are reported as 1 ns.
const STEP_NS_MIN: u64 = 1_000;

/// How a trace file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The writer finished the trace. `dropped` operations were not recorded, because of a limit or
    /// an error.
    Complete {
        /// The number of operations that were not recorded.
        dropped: u64,
    },
    /// There is no end block: the program was killed or is still running. Everything before the
    /// offset is intact.
    Cut {
        /// The offset of the first byte that is not part of a complete block.
        offset: u64,
    },
    /// A block in the middle of the file is damaged. Everything before the offset is intact.
    Damaged {
        /// The offset of the damaged block.
        offset: u64,
    },
}

impl Ending {
    /// Returns in words why measurements on this trace may be off; `None` for a complete trace.
    pub fn flaw(self) -> Option<String> {
        match self {
            Ending::Complete { dropped: 0 } => None,
            Ending::Complete { dropped } => Some(format!("{dropped} operations were not recorded")),
            Ending::Cut { offset } => Some(format!(
                "the trace has no end: its program was killed, still runs or could not write it; only the part before byte {offset} is read"
            )),
            Ending::Damaged { offset } => {
                Some(format!("the trace is damaged at byte {offset}; only the part before that is read"))
            }
        }
    }
}

/// An intact block.
#[derive(Debug, Clone, Copy)]
struct Place {
    head: BlockHead,
    /// The offset of its records.
    offset: usize,
}

/// A trace that is open for reading.
pub struct Trace {
    path: PathBuf,
    map: Map,
    header: Header,
    blocks: Vec<Place>,
    ending: Ending,
    /// The final sample (one key in n), and the time of an operation when the share was last
    /// lowered.
    sample: u32,
    operation_ns: Option<u64>,
    filter: Option<Filter>,
    /// Cached number of events, if a filter skips some of the records.
    filtered: OnceLock<u64>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Trace { path, header, blocks, ending, sample, .. } = self;
        let blocks = blocks.len();
        f.debug_struct("Trace")
            .field("path", path)
            .field("header", header)
            .field("blocks", &blocks)
            .field("ending", ending)
            .field("sample", sample)
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// Opens a trace and verifies every block. Cost: one pass over the file at the speed of memory
    /// or disk.
    ///
    /// Errors: [`Error::Vfs`]; [`Error::Foreign`] for a file that is not a trace;
    /// [`Error::Corruption`] for a damaged header; [`Error::Unsupported`] for an unknown version. A
    /// trace that is cut or damaged behind the header is not an error: see [`Trace::ending`].
    pub fn open(fs: &dyn Fs, path: &Path) -> Result<Trace> {
        let file = fs.open(path, OpenOptions::read())?;
        let map = file.map()?;
        file.advise(0, map.len() as u64, Advice::Sequential);
        Trace::over(map, path)
    }

    fn over(map: Map, path: &Path) -> Result<Trace> {
        if !map.starts_with(&format::MAGIC) {
            return Err(Error::Foreign { file: path.to_owned() });
        }
        let (header, begin) = Header::decode(&map).map_err(|error| match error.version {
            true => Error::Unsupported { file: path.to_owned(), what: error.what },
            false => Error::corruption(path, 0, error.what),
        })?;
        let Scanned { blocks, ending, sample, operation_ns } = scan(&map, begin, &header);
        let filter = Filter::new(&header, sample);
        let filtered = OnceLock::new();
        Ok(Trace {
            path: path.to_owned(),
            map,
            header,
            blocks,
            ending,
            sample,
            operation_ns,
            filter,
            filtered,
        })
    }

    /// Returns true if the file begins with the magic number of a trace.
    pub fn is_one(fs: &dyn Fs, path: &Path) -> Result<bool> {
        let file = fs.open(path, OpenOptions::read())?;
        let mut magic = [0; 8];
        let enough = file.len()? >= magic.len() as u64;
        if enough {
            file.read_exact_at(&mut magic, 0)?;
        }
        Ok(enough && magic == format::MAGIC)
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the sample: the trace holds the operations of one key in this many. If the recorder
    /// lowered the share, this is the final value, and earlier operations of other keys are
    /// skipped.
    pub fn sample(&self) -> u32 {
        self.sample
    }

    /// Returns the reason why the recorder lowered the share; `None` if it did not.
    pub fn lowered(&self) -> Option<Lowered> {
        self.filter.map(|_| Lowered { operation_ns: self.operation_ns })
    }

    /// Returns how the file ends.
    pub fn ending(&self) -> Ending {
        self.ending
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns the number of operations in intact blocks. If the recorder lowered the share, the
    /// first call reads all of them.
    pub fn records(&self) -> u64 {
        if self.filter.is_some() {
            return *self.filtered.get_or_init(|| self.events().filter(Result::is_ok).count() as u64);
        }
        self.blocks.iter().map(|block| u64::from(block.head.records)).sum()
    }

    /// Returns the time from the start of the recording to its last operation, in nanoseconds.
    pub fn last_ns(&self) -> u64 {
        self.blocks.iter().map(|block| block.head.last_ns).max().unwrap_or(0)
    }

    /// Returns the step of the clock: the largest number of nanoseconds of which all times are
    /// multiples. This is one second if times come from a clock with whole seconds. A step below a
    /// microsecond is returned as 1, and 0 means that all times are 0. Cost: reads events until the
    /// result must be 1, which takes a few events in a recorder's trace.
    pub fn step_ns(&self) -> u64 {
        let mut step = 0;
        for event in self.events().map_while(Result::ok) {
            step = common_step(step, event.time_ns);
            if (1..STEP_NS_MIN).contains(&step) {
                return 1;
            }
        }
        step
    }

    /// Returns the number of lanes. A lane is used by one thread at a time; beyond 64 threads,
    /// several share one.
    pub fn lanes(&self) -> usize {
        let mut lanes: Vec<u32> = self.blocks.iter().map(|block| block.head.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes.len()
    }

    /// Returns all events in order of time. Events of a lane keep their order, and no other event
    /// comes between those of a batch.
    pub fn events(&self) -> Events<'_> {
        let mut lanes: Vec<LaneCursor<'_>> = Vec::new();
        let mut order: Vec<(u32, usize)> =
            self.blocks.iter().enumerate().map(|(index, block)| (block.head.lane, index)).collect();
        order.sort_unstable();
        for (lane, index) in order {
            match lanes.last_mut().filter(|cursor| cursor.lane == lane) {
                Some(cursor) => cursor.blocks.push(index),
                None => lanes.push(LaneCursor::new(lane, index)),
            }
        }
        let mut events = Events { trace: self, lanes, current: 0, failed: None };
        for at in 0..events.lanes.len() {
            events.advance(at);
        }
        events.choose();
        events
    }

    fn records_of(&self, block: usize) -> Option<(&Place, &[u8])> {
        let place = self.blocks.get(block)?;
        Some((place, self.map.get(place.offset..place.offset + place.head.bytes as usize)?))
    }
}

/// The result of scanning the block heads.
struct Scanned {
    blocks: Vec<Place>,
    ending: Ending,
    sample: u32,
    operation_ns: Option<u64>,
}

/// Scans the intact blocks from `begin` on. Finds out how the file ends, and the smallest share of
/// keys that a block has.
fn scan(map: &[u8], begin: usize, header: &Header) -> Scanned {
    let mut blocks: Vec<Place> = Vec::new();
    let (mut at, mut sample) = (begin, header.sample);
    loop {
        let rest = map.get(at..).unwrap_or_default();
        let offset = at as u64;
        let sound =
            BlockHead::decode(rest, header.file_id).filter(|(head, _)| head.number == blocks.len() as u64);
        let Some((head, records)) = sound else {
            // A killed writer leaves at most one incomplete block, at the end.
            let ending = if goes_on(rest) { Ending::Damaged { offset } } else { Ending::Cut { offset } };
            return Scanned { blocks, ending, sample, operation_ns: None };
        };
        if header.adaptive.is_some() {
            sample = sample.max(u32::from(head.sample));
        }
        at += BLOCK_HEAD_BYTES + records.len();
        if head.end {
            let mut rest = records;
            let mut number = || format::take_varint(&mut rest);
            let totals = (number(), number(), header.adaptive.map_or(Ok(0), |_| number()));
            let (ending, operation_ns) = match totals {
                (Ok(_), Ok(dropped), Ok(operation_ns)) => (Ending::Complete { dropped }, operation_ns),
                _ => (Ending::Damaged { offset }, 0),
            };
            let operation_ns = Some(operation_ns).filter(|operation_ns| *operation_ns > 0);
            return Scanned { blocks, ending, sample, operation_ns };
        }
        blocks.push(Place { head, offset: at - records.len() });
    }
}

/// Returns the greatest common divisor.
fn common_step(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns true if another block follows the damaged one at the front of `rest`.
fn goes_on(rest: &[u8]) -> bool {
    let after = rest.get(1..).unwrap_or_default();
    after.windows(4).any(|window| window == BLOCK_MAGIC || window == END_MAGIC)
}

/// The read position within a lane.
#[derive(Debug)]
struct LaneCursor<'a> {
    lane: u32,
    /// Indexes of its blocks, in order.
    blocks: Vec<usize>,
    /// The number of its blocks that have been started.
    begun: usize,
    /// The unread part of the current block.
    rest: &'a [u8],
    left: u32,
    offset: usize,
    before_ns: u64,
    /// True if an event of the current batch has passed the filter.
    goes_on: bool,
    next: Option<Event<'a>>,
}

impl LaneCursor<'_> {
    fn new(lane: u32, block: usize) -> Self {
        LaneCursor {
            lane,
            blocks: vec![block],
            begun: 0,
            rest: &[],
            left: 0,
            offset: 0,
            before_ns: 0,
            goes_on: false,
            next: None,
        }
    }
}

/// The events of a trace, merged. After an error the iterator yields nothing more.
#[derive(Debug)]
pub struct Events<'a> {
    trace: &'a Trace,
    lanes: Vec<LaneCursor<'a>>,
    /// The lane of the next event.
    current: usize,
    failed: Option<Error>,
}

impl<'a> Events<'a> {
    /// Reads the next event of a lane.
    fn advance(&mut self, at: usize) {
        let Some(cursor) = self.lanes.get_mut(at) else { return };
        cursor.next = None;
        loop {
            match self.trace.next_in(cursor) {
                Ok(Some(mut event)) => {
                    let filter = self.trace.filter.as_ref();
                    if filter.is_none_or(|filter| filter.takes(&mut event, &mut cursor.goes_on)) {
                        cursor.next = Some(event);
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
        }
    }

    /// Chooses the lane with the earliest next event. The current lane is kept until its batch
    /// ends.
    fn choose(&mut self) {
        let goes_on = |cursor: &LaneCursor<'_>| cursor.next.is_some_and(|event| event.joined);
        if self.lanes.len() <= 1 || self.lanes.get(self.current).is_some_and(goes_on) {
            return;
        }
        let times = self.lanes.iter().enumerate();
        let times = times.filter_map(|(at, cursor)| Some((cursor.next?.time_ns, at)));
        self.current = times.min().map_or(self.current, |(_, at)| at);
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.lanes.clear();
            return Some(Err(error));
        }
        let event = self.lanes.get(self.current)?.next?;
        self.advance(self.current);
        self.choose();
        Some(Ok(event))
    }
}

impl Trace {
    /// Decodes the next record of a lane, whether or not its key is in the sample. Returns `None`
    /// at the end of the lane.
    fn next_in<'a>(&'a self, cursor: &mut LaneCursor<'a>) -> Result<Option<Event<'a>>> {
        while cursor.left == 0 {
            if !cursor.rest.is_empty() {
                return Err(self.damage(cursor.offset, "a block has more bytes than records"));
            }
            let next = cursor.blocks.get(cursor.begun).and_then(|block| self.records_of(*block));
            let Some((place, records)) = next else { return Ok(None) };
            cursor.begun += 1;
            (cursor.rest, cursor.left, cursor.offset) = (records, place.head.records, place.offset);
            cursor.before_ns = place.head.first_ns;
        }
        let decoded = format::decode(cursor.rest, self.header.keys, cursor.lane, cursor.before_ns);
        let (event, used) = decoded.map_err(|what| self.damage(cursor.offset, what))?;
        cursor.rest = cursor.rest.get(used..).unwrap_or_default();
        cursor.offset += used;
        cursor.left -= 1;
        cursor.before_ns = event.time_ns;
        Ok(Some(event))
    }

    fn damage(&self, offset: usize, what: &str) -> Error {
        Error::corruption(&self.path, offset as u64, what)
    }
}

/// Opens arbitrary bytes as a trace and reads every event, for the fuzzer. Returns the number of
/// events.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) -> usize {
    let fs = cairn_vfs::MemFs::new();
    let path = Path::new("/trace");
    let written = fs.open(path, OpenOptions::create_new()).and_then(|file| file.write_all_at(bytes, 0));
    let Ok(trace) = written.map_err(Error::from).and_then(|()| Trace::open(&fs, path)) else { return 0 };
    let good = trace.events().take_while(std::result::Result::is_ok).count();
    assert!(good as u64 <= trace.records(), "no more events than blocks have records");
    good
}

#[cfg(test)]
mod tests;
