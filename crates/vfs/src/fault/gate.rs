//! The gate that every operation passes. It counts operations, cuts the power at the configured
//! one, and injects faults.

use std::io;

use rustix::io::Errno;

use super::options::{Fault, Rule, When};
use crate::Operation;

/// The number of kinds in [`Operation`].
const KINDS: usize = Operation::StartThread as usize + 1;

#[derive(Debug, Default)]
pub(super) struct Gate {
    /// Operations admitted so far; also the index of the next one.
    operations: u64,
    by_kind: [u64; KINDS],
    injected: u64,
    rules: Vec<Rule>,
    crash_at: Option<u64>,
    powered_off: bool,
}

impl Gate {
    /// Counts the operation. Fails when there is no power, and otherwise returns the fault to
    /// inject.
    pub(super) fn admit(&mut self, operation: Operation) -> io::Result<Option<Fault>> {
        if self.crash_at.is_some_and(|index| self.operations >= index) {
            self.powered_off = true;
        }
        if self.powered_off {
            return Err(io::Error::other("the power was lost"));
        }
        debug_assert!(self.by_kind.iter().sum::<u64>() == self.operations, "an operation is of no kind");
        let index = self.operations;
        self.operations += 1;
        let of_kind = &mut self.by_kind[operation as usize];
        let nth = *of_kind;
        *of_kind += 1;
        debug_assert!(nth <= index, "operation {index} is number {nth} of its kind");
        let hit = self.rules.iter().find(|rule| {
            let distance = match rule.when {
                When::Index(at) => index.checked_sub(at),
                When::Nth(kind, n) if kind == operation => nth.checked_sub(n),
                When::Nth(..) => None,
            };
            // A call that is interrupted every time would make its caller retry forever, as it
            // should. So every other call goes through.
            let again = |d: u64| rule.persistent && (rule.fault != Fault::Interrupted || d.is_multiple_of(2));
            rule.fault.applies_to(operation) && distance.is_some_and(|d| d == 0 || again(d))
        });
        let fault = hit.map(|rule| rule.fault);
        self.injected += u64::from(fault.is_some());
        debug_assert!(self.injected <= self.operations);
        debug_assert!(fault.is_none_or(|fault| fault.applies_to(operation)));
        Ok(fault)
    }

    /// Turns faults that are errors into errors. Returns all others for the operation to act out.
    pub(super) fn fail(fault: Option<Fault>) -> io::Result<Option<Fault>> {
        match fault {
            Some(Fault::Io) => Err(Errno::IO.into()),
            Some(Fault::Full) => Err(Errno::NOSPC.into()),
            Some(Fault::Interrupted) => Err(Errno::INTR.into()),
            other => Ok(other),
        }
    }

    pub(super) fn inject(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub(super) fn clear_rules(&mut self) {
        self.rules.clear();
    }

    pub(super) fn crash_at(&mut self, index: u64) {
        self.crash_at = Some(index);
    }

    pub(super) fn power_off(&mut self) {
        self.powered_off = true;
    }

    pub(super) fn is_powered_off(&self) -> bool {
        self.powered_off
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn operations_of(&self, operation: Operation) -> u64 {
        debug_assert!(self.by_kind[operation as usize] <= self.operations);
        self.by_kind[operation as usize]
    }

    pub(super) fn injected(&self) -> u64 {
        self.injected
    }
}
