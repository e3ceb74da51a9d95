//! Write-ahead log: checksummed records in recycled segments, parallel appends, group commit, bounded replay.
#![forbid(unsafe_code)]
