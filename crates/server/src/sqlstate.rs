//! Error codes of the server itself; those of statements are in cairn-sql.
#![allow(missing_docs, reason = "the names are the documentation, and PostgreSQL's manual has them all")]

pub const PROTOCOL_VIOLATION: &str = "08P01";
pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
pub const INVALID_BINARY_REPRESENTATION: &str = "22P03";
pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
pub const IN_FAILED_SQL_TRANSACTION: &str = "25P02";
pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: &str = "25P03";
pub const INVALID_SQL_STATEMENT_NAME: &str = "26000";
pub const INVALID_AUTHORIZATION: &str = "28000";
pub const INVALID_PASSWORD: &str = "28P01";
pub const INVALID_CURSOR_NAME: &str = "34000";
pub const SYNTAX_ERROR: &str = "42601";
pub const UNDEFINED_OBJECT: &str = "42704";
pub const DUPLICATE_PREPARED_STATEMENT: &str = "42P05";
pub const DUPLICATE_CURSOR: &str = "42P03";
pub const TOO_MANY_CONNECTIONS: &str = "53300";
pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
pub const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55000";
pub const QUERY_CANCELED: &str = "57014";
pub const ADMIN_SHUTDOWN: &str = "57P01";
pub const CANNOT_CONNECT_NOW: &str = "57P03";
pub const IDLE_SESSION_TIMEOUT: &str = "57P05";
