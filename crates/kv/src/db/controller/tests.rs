//! What writers pay.
#![allow(clippy::unwrap_used)]

use cairn_vfs::ManualClock;

use super::*;

/// Right below the hard limit.
fn slowest() -> Pressure {
    Pressure { cause: StallCause::LevelZero, speed: SPEED_MIN }
}

/// Goal: large writes pass at the speed that is set, give or take what may be owed, and small ones
/// as before in small delays. Method: a clock that sleeps move; 64 MiB at 4 MiB a second in writes
/// of 1 MiB, then of 1 KiB.
#[test]
fn large_writes_pay() {
    for bytes in [1 << 20, 1 << 10] {
        let (clock, controller) = (ManualClock::new(Duration::ZERO), Controller::new());
        controller.set(&[slowest()]);
        let mut longest = Duration::ZERO;
        for _ in 0..(64 << 20) / bytes {
            let waited = controller.admit(bytes, &clock, || false);
            longest = longest.max(waited.map_or(Duration::ZERO, |(_, waited)| waited));
        }
        let took = clock.now();
        assert!(took > Duration::from_secs(14) && took <= Duration::from_secs(16), "{bytes}: {took:?}");
        assert!(bytes > 1 << 10 || longest <= DELAY_MAX, "{longest:?}");
    }
}

/// Goal: who pays a large debt goes on when there is nothing left to pay for, or the store has
/// failed. Method: a write of a gigabyte; the pressure ends, or the wait is abandoned, at a look in
/// the middle of it.
#[test]
fn a_debt_ends_with_its_cause() {
    for fails in [false, true] {
        let (clock, controller) = (ManualClock::new(Duration::ZERO), Controller::new());
        controller.set(&[slowest()]);
        let looks = std::cell::Cell::new(0);
        let abandon = || {
            looks.set(looks.get() + 1);
            if looks.get() == 10 && !fails {
                controller.set(&[Pressure { speed: f64::INFINITY, ..slowest() }]);
            }
            looks.get() == 10 && fails
        };
        let (cause, waited) = controller.admit(1 << 30, &clock, abandon).unwrap();
        assert_eq!(cause, StallCause::LevelZero);
        assert!(waited <= 11 * DELAY_MAX, "{waited:?}");
    }
}
