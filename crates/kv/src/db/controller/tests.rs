//! Delays that writers pay.
#![allow(clippy::unwrap_used)]

use cairn_vfs::ManualClock;

use super::*;

/// Returns a pressure just below the hard limit.
fn slowest() -> Pressure {
    Pressure { cause: StallCause::LevelZero, speed: SPEED_MIN }
}

/// Goal: large writes pass at the set speed, give or take the permitted debt, and small ones with
/// small delays. Method: 64 MiB at 4 MiB per second in writes of 1 MiB, then of 1 KiB, with a clock
/// that advances with each sleep.
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

/// Goal: a writer that pays a large debt stops paying when the pressure ends or the store fails.
/// Method: a write of a gigabyte; halfway through, the pressure ends or the wait is abandoned.
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
