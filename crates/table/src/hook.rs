//! Points in the code at which a test can stop a thread or run other code. In other builds they do
//! nothing.

#[cfg(test)]
use std::cell::RefCell;

#[cfg(test)]
type Hook = Box<dyn FnMut(&'static str)>;

#[cfg(test)]
thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Called when a thread reaches a point.
#[inline]
pub(crate) fn at(place: &'static str) {
    #[cfg(test)]
    {
        // The hook is removed meanwhile, so that code it calls can pass here too.
        let hook = HOOK.with(|hook| hook.borrow_mut().take());
        if let Some(mut hook) = hook {
            hook(place);
            HOOK.with(|empty| _ = empty.borrow_mut().get_or_insert(hook));
        }
    }
    #[cfg(not(test))]
    let _ = place;
}

/// Sets the hook that this thread calls at each point from now on.
#[cfg(test)]
pub(crate) fn set(hook: impl FnMut(&'static str) + 'static) {
    HOOK.with(|place| *place.borrow_mut() = Some(Box::new(hook)));
}

/// Removes the hook.
#[cfg(test)]
pub(crate) fn clear() {
    HOOK.with(|place| *place.borrow_mut() = None);
}
