use super::thrift::{Flaw, Number, walk};
use super::*;

/// Goal: lengths and counts are checked against the available bytes, including those past the part
/// that was read. Method: handwritten structs, each with one flaw.
#[test]
fn lengths_are_checked() {
    // Field 2: i32 300; field 5: a struct with field 1: i32 -1; field 6: a list of two booleans;
    // the end.
    let sound = [0x25, 0xd8, 0x04, 0x3c, 0x15, 0x01, 0x00, 0x19, 0x21, 0x01, 0x02, 0x00];
    let (numbers, walked) = walk(&sound, 0);
    assert_eq!(walked, Ok(()));
    let expected =
        [Number { within: None, field: 2, value: 300 }, Number { within: Some(5), field: 1, value: -1 }];
    assert_eq!(numbers, expected);
    for (bytes, beyond, flaw) in [
        (&sound[..11], 0, Flaw::Cut),
        // A string of 5 bytes, of which the file has 2.
        (&[0x18, 0x05, b'a', b'b'], 0, Flaw::Long),
        (&[0x18, 0x05, b'a', b'b'], 3, Flaw::Cut),
        // Lists of 2^28 structs, and of 15.
        (&[0x19, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x01], 1000, Flaw::Long),
        (&[0x19, 0xec, 0x00], 0, Flaw::Long),
        (&[0x1e], 0, Flaw::Kind),
        (&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 9, Flaw::Kind),
        (&[0x1c; 100], 0, Flaw::Kind),
        (&[0x1b, 0xff, 0xff, 0x03, 0x88], 9, Flaw::Long),
    ] {
        assert_eq!(walk(bytes, beyond).1, Err(flaw), "{bytes:x?}");
    }
}

/// Goal: times in the old format keep every nanosecond, in any year. Method: 1970, a nanosecond
/// before, and years beyond the range of 64-bit nanoseconds.
#[test]
fn old_times_keep_their_nanoseconds() {
    let time = |day: u32, nanos: u64| {
        let mut time = Int96::new();
        time.set_data(nanos as u32, (nanos >> 32) as u32, day);
        super::nanos(&time)
    };
    assert_eq!(time(2_440_588, 0), 0);
    assert_eq!(time(2_440_588, 1_001), 1_001);
    assert_eq!(time(2_440_587, 86_399_999_999_999), -1);
    assert_eq!(time(5_373_484, 0), (5_373_484 - 2_440_588) * 86_400_000_000_000_i128);
    assert!(time(0, 0) < i128::from(i64::MIN));
}

/// Goal: a name shared by two columns is found.
#[test]
fn repeated_names_are_found() {
    assert_eq!(repeated(["a", "b", "a", "b"].into_iter()), Some("a"));
    assert_eq!(repeated(["a", "A"].into_iter()), None);
}

/// Goal: a panic of the library becomes an error, also within another guard.
#[test]
fn panics_are_errors() {
    quiet_panics();
    let outer = guarded(|| {
        guarded::<()>(|| panic!("no such encoding")).unwrap_err();
        guarded(|| Ok(1))
    });
    assert_eq!(outer.unwrap(), 1);
    assert!(guarded::<()>(|| panic!("again")).unwrap_err().to_string().contains("damaged"));
}
