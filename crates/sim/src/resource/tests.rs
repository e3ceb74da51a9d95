//! Sharing, checked against figures worked out by hand and with random work.

use proptest::prelude::*;

use super::*;
use crate::hardware::Hardware;

fn capacity() -> Capacity {
    Capacity::new(&Hardware { cores: 2.0, ..Hardware::default() }, 0)
}

/// Goal: disk and processor time overlap. Method: a job alone takes the larger of both. Two jobs
/// that are bound by the disk take twice as long, two that are bound by their one thread do not.
#[test]
fn work_takes_the_larger_of_both() {
    let capacity = capacity();
    let io = Work { write_bytes: 1e9, cpu_secs: 0.2, threads: 1.0, ..Work::default() };
    let cpu = Work { write_bytes: 1e6, cpu_secs: 2.0, threads: 1.0, ..Work::default() };
    let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
    let flow = capacity.flow(&io);
    assert!((flow.alone_secs - 1.0).abs() < 1e-9);
    share(&[flow, flow], &mut speeds, &mut limited_by);
    assert!((speeds[0] - 0.5).abs() < 1e-9 && limited_by[0] == Some(Resource::DiskWrite));
    let flow = capacity.flow(&cpu);
    assert!((flow.alone_secs - 2.0).abs() < 1e-9);
    share(&[flow, flow], &mut speeds, &mut limited_by);
    assert!((speeds[1] - 1.0).abs() < 1e-9 && limited_by[1].is_none());
}

/// Goal: a disk gives all streams the same bandwidth, so a job that needs little runs as if alone.
/// Method: a job that could fill the disk, next to one and to two jobs that need three tenths of
/// it; figures by hand.
#[test]
fn small_demands_are_not_slowed_down() {
    let capacity = capacity();
    let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
    let full = capacity.flow(&Work { write_bytes: 1e9, cpu_secs: 0.2, threads: 1.0, ..Work::default() });
    let light = capacity.flow(&Work { write_bytes: 3e8, cpu_secs: 1.0, threads: 1.0, ..Work::default() });
    share(&[full, light], &mut speeds, &mut limited_by);
    assert!((speeds[0] - 0.7).abs() < 1e-6 && (speeds[1] - 1.0).abs() < 1e-6, "{speeds:?}");
    assert_eq!(limited_by, [Some(Resource::DiskWrite), None]);
    share(&[full, light, light], &mut speeds, &mut limited_by);
    assert!((speeds[0] - 0.4).abs() < 0.05 && speeds[1] > 0.9, "{speeds:?}");
}

/// Goal: a wait for a file sync overlaps no other work. Method: a second of processor work, a
/// second of writes, and four syncs of a millisecond; the disk is then half used.
#[test]
fn a_wait_for_the_disk_comes_on_top() {
    let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
    hardware.disk.sync_latency_us = 1000.0;
    let capacity = Capacity::new(&hardware, 0);
    let write_bytes = hardware.disk.write_mb_per_sec * 1e6;
    let work = Work { write_bytes, cpu_secs: 1.0, threads: 1.0, syncs: 4.0, ..Work::default() };
    let flow = capacity.flow(&work);
    assert!((flow.alone_secs - 2.004).abs() < 1e-9, "{flow:?}");
    assert!((flow.share[Resource::DiskWrite as usize] - 1.0 / 2.004).abs() < 1e-9);
}

/// Goal: cores are shared by thread, and a thread that needs little gets it. Method: on two cores,
/// a job of four threads next to two of one, then a light flow next to two that would fill the
/// cores; figures by hand.
#[test]
fn threads_share_cores_evenly() {
    let capacity = capacity();
    let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
    let work = |cpu_secs, threads| capacity.flow(&Work { cpu_secs, threads, ..Work::default() });
    share(&[work(2.0, 4.0), work(1.0, 1.0), work(1.0, 1.0)], &mut speeds, &mut limited_by);
    let cores = [2.0 * speeds[0], speeds[1], speeds[2]];
    for (found, expected) in cores.iter().zip([4.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
        assert!((found - expected).abs() < 1e-9, "{cores:?}");
    }
    let light = capacity.flow_per_second(&Work { cpu_secs: 0.2, threads: 1.0, ..Work::default() });
    share(&[light, work(1.0, 1.0), work(1.0, 1.0)], &mut speeds, &mut limited_by);
    assert!((speeds[0] - 1.0).abs() < 1e-9 && (speeds[1] - 0.9).abs() < 1e-9, "{speeds:?}");
    assert_eq!(limited_by, [None, Some(Resource::Cpu), Some(Resource::Cpu)]);
}

/// Goal: contention for cores does not stretch the waits of a flow, and syncs take longer when
/// cores are busy. Method: on two cores, four threads that always work, and a flush of 5 ms of work
/// and three syncs; figures by hand.
#[test]
fn waits_are_not_stretched_and_busy_cores_lengthen_syncs() {
    let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
    hardware.disk.sync_latency_us = 1000.0;
    let merge = Work { cpu_secs: 4.0, threads: 4.0, ..Work::default() };
    let flush = Work { cpu_secs: 0.005, threads: 1.0, syncs: 3.0, ..Work::default() };
    for busy_us in [0.001, 500.0] {
        hardware.disk.busy_sync_us = busy_us;
        let capacity = Capacity::new(&hardware, 0);
        let flows = [capacity.flow(&merge), capacity.flow(&flush)];
        let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
        share(&flows, &mut speeds, &mut limited_by);
        // When the flush works, each of the five threads has two fifths of a core. It waits next to
        // two threads a core.
        let works = 0.005 / 0.4;
        let secs = works + 0.003 + 3.0 * busy_us * 1e-6 * 2.0;
        assert!((0.008 / speeds[1] - secs).abs() < 2e-5, "{speeds:?} {secs}");
        // While the flush waits, the four threads have half a core each. Together they fill the
        // cores.
        let core = 0.4 * works / secs + 0.5 * (1.0 - works / secs);
        assert!((speeds[0] * 2.0 / 4.0 - core).abs() < 1e-3, "{speeds:?} {core}");
        assert!((4.0 * core + 0.005 / secs - 2.0).abs() < 1e-9);
    }
    // One thread on two cores makes a load of a half, and waits for no other thread itself.
    let one = Work { cpu_secs: 1.0, threads: 1.0, ..Work::default() };
    let capacity = Capacity::new(&hardware, 0);
    let flows = [capacity.flow(&one), capacity.flow(&flush)];
    let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
    share(&flows, &mut speeds, &mut limited_by);
    assert!(
        (0.008 / speeds[1] - (0.008 + 3.0 * 500e-6 * 0.5)).abs() < 1e-5 && speeds[0] == 1.0,
        "{speeds:?}"
    );
}

/// Goal: one thread of a job waits for all its removals, and the syncs of its threads collide.
/// Method: a merge of two threads with ten inputs; figures by hand.
#[test]
fn removals_and_syncs_of_parts_are_waited_for() {
    let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
    (hardware.disk.sync_latency_us, hardware.disk.remove_latency_us) = (500.0, 2000.0);
    let work = Work { cpu_secs: 1.0, threads: 2.0, syncs: 4.0, removals: 10.0, ..Work::default() };
    let flow = Capacity::new(&hardware, 0).flow(&work);
    assert!((flow.alone_secs - (0.5 + 4.0 * 0.0005 + 10.0 * 0.002)).abs() < 1e-9, "{flow:?}");
    // Each thread writes for a tenth of a second, both at the same time.
    let write_bytes = hardware.disk.write_mb_per_sec * 1e6 * 0.2;
    let flow = Capacity::new(&hardware, 0).flow(&Work { write_bytes, ..work });
    assert!((flow.alone_secs - (0.5 + 0.2 + 4.0 * 0.0005 + 10.0 * 0.002)).abs() < 1e-9, "{flow:?}");
}

/// Goal: the threads of a job use no more than the cores, and their waits do not overlap their own
/// work. Method: four seconds of work in four threads on two cores, then a second of writes.
#[test]
fn parts_work_in_step() {
    let hardware = Hardware { cores: 2.0, ..Hardware::default() };
    let mut work = Work { cpu_secs: 4.0, threads: 4.0, syncs: 1.0, ..Work::default() };
    work.write_bytes = hardware.disk.write_mb_per_sec * 1e6;
    let flow = Capacity::new(&hardware, 0).flow(&work);
    let sync_secs = hardware.disk.sync_latency_us * 1e-6;
    assert!((flow.alone_secs - (2.0 + 1.0 + sync_secs)).abs() < 1e-9, "{flow:?}");
}

/// Goal: a flow that waits for files waits longer next to other such flows, in proportion to the
/// share of time that they wait. Method: two merges that do nothing else, then one next to work
/// that never waits.
#[test]
fn files_of_others_are_waited_for() {
    let mut hardware = Hardware { cores: 2.0, ..Hardware::default() };
    let disk = &mut hardware.disk;
    (disk.sync_latency_us, disk.remove_latency_us) = (1000.0, 500.0);
    (disk.among_files_sync_us, disk.among_files_remove_us) = (2000.0, 1000.0);
    let capacity = Capacity::new(&hardware, 0);
    let files = capacity.flow(&Work { syncs: 10.0, removals: 4.0, threads: 1.0, ..Work::default() });
    let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
    share(&[files, files], &mut speeds, &mut limited_by);
    assert!((0.012 / speeds[0] - (0.012 + 0.024)).abs() < 1e-4 && speeds[0] == speeds[1], "{speeds:?}");
    let busy = capacity.flow(&Work { cpu_secs: 1.0, threads: 1.0, ..Work::default() });
    share(&[files, busy], &mut speeds, &mut limited_by);
    assert!((speeds[0] - 1.0).abs() < 1e-3, "{speeds:?}");
    // Four threads of one job wait at the same time: a flow next to them waits for each of them.
    let four = capacity.flow(&Work { syncs: 10.0, threads: 4.0, ..Work::default() });
    let one = capacity.flow(&Work { syncs: 10.0, threads: 1.0, ..Work::default() });
    share(&[four, one], &mut speeds, &mut limited_by);
    assert!((0.010 / speeds[0] - (0.010 + 0.020)).abs() < 1e-4, "{speeds:?}");
    assert!((0.010 / speeds[1] - (0.010 + 4.0 * 0.020)).abs() < 1e-3, "{speeds:?}");
}

proptest! {
    #![proptest_config(crate::test_config::cases(64))]

    /// Goal: no resource is above its capacity, and a full resource holds back each flow below full
    /// speed.
    /// Method: random work.
    #[test]
    fn sharing_is_feasible_and_wastes_nothing(
        works in prop::collection::vec((0.0f64..1e9, 0.0f64..1e9, 0.0f64..5.0, 1u32..4), 1..12)
    ) {
        let capacity = capacity();
        let flows: Vec<Flow> = works.iter().map(|&(read_bytes, write_bytes, cpu_secs, threads)| {
            let threads = f64::from(threads);
            capacity.flow(&Work { read_bytes, write_bytes, cpu_secs, threads, ..Work::default() })
        }).collect();
        let (mut speeds, mut limited_by) = (Vec::new(), Vec::new());
        let used = share(&flows, &mut speeds, &mut limited_by);
        for (at, used) in used.iter().enumerate() {
            prop_assert!(*used <= 1.0 + 1e-6);
            let sum: f64 = flows.iter().zip(&speeds).map(|(flow, speed)| flow.share[at] * speed).sum();
            prop_assert!((sum - used).abs() < 1e-6);
        }
        for (speed, limit) in speeds.iter().zip(&limited_by) {
            prop_assert!(*speed > 0.0 && *speed <= 1.0 + 1e-9);
            prop_assert!(limit.is_none() == (*speed > 1.0 - 1e-9));
            if let Some(resource) = limit {
                // The rounds that reconcile cores and disk stop at an approximation.
                prop_assert!(used[*resource as usize] > 1.0 - 1e-3);
            }
        }
    }
}
