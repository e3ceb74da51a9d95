//! Places at which a test stops a thread, or does something else there. In other builds there is
//! nothing.

#[cfg(test)]
use std::cell::RefCell;

#[cfg(test)]
type Hook = Box<dyn FnMut(&'static str)>;

#[cfg(test)]
thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// A thread has come to a place.
#[inline]
pub(crate) fn at(place: &'static str) {
    #[cfg(test)]
    {
        // Taken out meanwhile, so that what it calls can come by here.
        let hook = HOOK.with(|hook| hook.borrow_mut().take());
        if let Some(mut hook) = hook {
            hook(place);
            HOOK.with(|empty| _ = empty.borrow_mut().get_or_insert(hook));
        }
    }
    #[cfg(not(test))]
    let _ = place;
}

/// Calls this wherever the thread comes to a place, from now on.
#[cfg(test)]
pub(crate) fn set(hook: impl FnMut(&'static str) + 'static) {
    HOOK.with(|place| *place.borrow_mut() = Some(Box::new(hook)));
}

/// Calls nothing any more.
#[cfg(test)]
pub(crate) fn clear() {
    HOOK.with(|place| *place.borrow_mut() = None);
}
