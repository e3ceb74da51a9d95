//! Power loss, failing and full disks.
