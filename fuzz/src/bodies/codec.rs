//! Integers and compressed bytes.

use cairn_codec::compress::{Decompressor, Format, expansion_max};
use cairn_codec::varint as codec;

/// Checks that bytes that decode are encoded to the same bytes, and that an encoded number is
/// decoded to itself.
pub fn varint(data: &[u8]) {
    if let Ok((value, used)) = codec::decode(data) {
        let mut out = Vec::new();
        codec::push(value, &mut out);
        assert_eq!(Some(&out[..]), data.get(..used));
        assert_eq!(codec::encoded_len(value), used);
    }
    let mut word = [0; 8];
    word.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    let value = u64::from_le_bytes(word);
    let mut out = Vec::new();
    codec::push(value, &mut out);
    assert_eq!(codec::decode(&out), Ok((value, out.len())));
}

/// `format u8 | limit u16 | compressed bytes`: the output never exceeds the limit, nor the largest
/// expansion of the format.
pub fn decompress(data: &[u8]) {
    let [format, low, high, input @ ..] = data else { return };
    let format = [Format::Snappy, Format::Zstd][usize::from(*format) % 2];
    let limit = usize::from(u16::from_le_bytes([*low, *high]));
    let mut out = b"before".to_vec();
    Decompressor::local(|decompressor| {
        if let Ok(bytes) = decompressor.append(format, input, &mut out, limit) {
            assert_eq!(out.len(), 6 + bytes);
            assert!(bytes <= limit && bytes as u64 <= expansion_max(format, input.len()));
        }
        assert!(out.len() <= 6 + limit && out.starts_with(b"before"));
        let mut whole = vec![0; limit];
        if let Ok(bytes) = decompressor.decompress(format, input, &mut whole) {
            assert!(bytes <= limit);
            assert_eq!(&whole[..bytes], &out[6..], "both ways give the same");
        }
    });
}
