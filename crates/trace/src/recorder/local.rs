//! What a thread remembers of the recorder that it records with.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::lane::Lane;
use super::ring::{Place, Ring};
use super::shared::Shared;

thread_local! {
    pub(super) static LOCAL: RefCell<Local> = const {
        RefCell::new(Local {
            recorder: 0,
            lane: None,
            place: None,
            epoch: 0,
            left: 0,
            step: 0,
            now_ns: 0,
            is_told: false,
            shared: Weak::new(),
            others: Vec::new(),
        })
    };
}

/// A thread's place in its lane.
#[derive(Debug)]
pub(super) struct Local {
    /// The recorder's number; 0 for none.
    pub recorder: u64,
    pub lane: Option<Arc<Lane>>,
    /// `None` where the lane has no ring.
    pub place: Option<Place>,
    /// The recorder's when the clock was last looked at.
    pub epoch: u64,
    /// Operations until the next look at the clock, and from that one to the next but one.
    pub left: u32,
    pub step: u32,
    /// The clock at the last look, and whether the lane knows of it.
    pub now_ns: u64,
    pub is_told: bool,
    shared: Weak<Shared>,
    /// Recorders that the thread has recorded with before.
    others: Vec<(u64, Weak<Shared>, Arc<Lane>)>,
}

impl Local {
    /// Goes over to a recorder.
    #[cold]
    pub fn adopt(&mut self, shared: &Arc<Shared>) {
        if let Some(lane) = self.lane.take() {
            self.others.push((self.recorder, std::mem::take(&mut self.shared), lane));
        }
        let known = self.others.iter().position(|(number, ..)| *number == shared.number);
        let lane = match known {
            Some(at) => self.others.swap_remove(at).2,
            None => {
                // Recorders that are gone: their lanes are wanted by nobody.
                self.others.retain(|(_, shared, _)| shared.strong_count() > 0);
                shared.free_lane()
            }
        };
        self.place = lane.ring.as_ref().map(Ring::place);
        (self.recorder, self.shared, self.lane) = (shared.number, Arc::downgrade(shared), Some(lane));
        (self.left, self.step, self.now_ns, self.is_told) = (0, 0, 0, false);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let lanes = self.lane.iter().chain(self.others.iter().map(|(_, _, lane)| lane));
        lanes.for_each(|lane| lane.leave());
    }
}
