//! Threads. The engines start them only here. Built with `--cfg cairn_shuttle`, they run under a
//! scheduler under test (see [`sync`](crate::sync)).

#[cfg(not(cairn_shuttle))]
use std::cell::Cell;
use std::io;
#[cfg(not(cairn_shuttle))]
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(cairn_shuttle)]
use shuttle::thread as threads;
#[cfg(not(cairn_shuttle))]
use std::thread as threads;

pub use threads::{JoinHandle, Scope, ScopedJoinHandle};

mod refusal;
pub use refusal::{Refusal, refuse_after};

/// Starts a named thread. The name shows in debuggers and profilers (the kernel keeps its first 15
/// bytes).
///
/// Errors: the operating system's error when it cannot start another thread, and `InvalidInput` for
/// a name with a zero byte.
pub fn spawn<F, T>(name: &str, f: F) -> io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a thread name cannot hold a zero byte"));
    }
    refusal::check()?;
    threads::Builder::new().name(name.to_owned()).spawn(f)
}

/// Runs `f` with a scope whose threads may borrow from the caller, and returns after all of them
/// have ended. Like [`std::thread::scope`].
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    threads::scope(f)
}

/// Like [`Scope::spawn`], but names the thread, and returns an error instead of panicking when the
/// operating system refuses it.
///
/// Errors: those of [`spawn`].
pub fn spawn_scoped<'scope, F, T>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    f: F,
) -> io::Result<ScopedJoinHandle<'scope, T>>
where
    F: FnOnce() -> T + Send + 'scope,
    T: Send + 'scope,
{
    if name.contains('\0') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a thread name cannot hold a zero byte"));
    }
    refusal::check()?;
    #[cfg(cairn_shuttle)]
    return Ok(scope.spawn(f));
    #[cfg(not(cairn_shuttle))]
    threads::Builder::new().name(name.to_owned()).spawn_scoped(scope, f)
}

/// Returns the number of threads that can run at once: the processors available under CPU affinity
/// and control groups, or 1 when that is unknown.
pub fn available_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Lets other threads run.
pub fn yield_now() {
    threads::yield_now();
}

/// One turn of a loop that waits for another thread without sleeping. A scheduler under test lets
/// other threads run here, since one of them may be the only one that can end the loop.
#[inline]
pub fn spin_loop() {
    #[cfg(cairn_shuttle)]
    threads::yield_now();
    #[cfg(not(cairn_shuttle))]
    std::hint::spin_loop();
}

/// A scheduling point under a scheduler under test, for operations that the scheduler does not
/// know. Does nothing otherwise.
#[inline]
pub fn step() {
    // To shuttle, sleeping only means a scheduling point.
    #[cfg(cairn_shuttle)]
    threads::sleep(std::time::Duration::ZERO);
}

/// Returns a small number unique to this thread, used to spread threads over the parts of a sharded
/// structure.
#[inline]
pub fn number() -> usize {
    // Under shuttle, all threads of a test are one to the operating system.
    #[cfg(cairn_shuttle)]
    return threads::current().id().into();
    #[cfg(not(cairn_shuttle))]
    {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        NUMBER.with(|number| {
            if number.get() == usize::MAX {
                number.set(THREADS.fetch_add(1, Ordering::Relaxed));
            }
            debug_assert!(number.get() != usize::MAX, "the thread has no number");
            number.get()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: threads carry their names and results; a bad name is an error, not a panic.
    #[test]
    fn spawn_names_and_returns() {
        let name = spawn("vfs-test", || std::thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(name.join().unwrap().as_deref(), Some("vfs-test"));
        assert_eq!(spawn("a\0b", || ()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    /// Goal: a thread keeps its number, and no other thread has it.
    #[test]
    fn thread_numbers_are_unique() {
        let mine = number();
        let other = spawn("vfs-number", || (number(), number())).unwrap().join().unwrap();
        assert_eq!((number(), other.0), (mine, other.1));
        assert_ne!(other.0, mine);
        spin_loop();
        step();
    }

    /// Goal: scoped threads borrow, carry their names, and are refused without a panic.
    #[test]
    fn spawn_scoped_borrows_and_refuses() {
        let text = String::from("borrowed");
        scope(|s| {
            let thread = spawn_scoped(s, "vfs-scoped", || {
                (text.len(), std::thread::current().name().map(str::to_owned))
            });
            assert_eq!(thread.unwrap().join().unwrap(), (8, Some("vfs-scoped".to_owned())));
            assert_eq!(spawn_scoped(s, "a\0b", || ()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        });
    }

    /// Goal: threads are refused with the system's error, from the requested one on, only in the
    /// thread that asked for it, and only until the guard is dropped. Method: nested guards, with
    /// another thread beside them.
    #[test]
    fn refusals() {
        let start = || spawn("vfs-refused", || ()).map(|thread| thread.join().unwrap());
        let scoped = || scope(|s| spawn_scoped(s, "vfs-refused", || ()).map(|_| ()));
        {
            let _two = refuse_after(2);
            assert!(start().is_ok() && scoped().is_ok());
            for error in [start().unwrap_err(), scoped().unwrap_err()] {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
            }
            std::thread::scope(|s| s.spawn(|| assert!(start().is_ok())).join().unwrap());
            {
                let _one = refuse_after(1);
                assert!(start().is_ok() && start().is_err());
            }
            assert!(start().is_err(), "as it was before");
        }
        assert!(start().is_ok() && scoped().is_ok());
    }

    /// Goal: a scope lets threads borrow and waits for them.
    #[test]
    fn scope_borrows() {
        let numbers = [1, 2, 3];
        let total: i32 = scope(|s| {
            let halves =
                [s.spawn(|| numbers[..1].iter().sum::<i32>()), s.spawn(|| numbers[1..].iter().sum())];
            halves.into_iter().map(|half| half.join().unwrap()).sum()
        });
        assert_eq!(total, 6);
        assert!(available_parallelism() >= 1);
        yield_now();
    }
}
