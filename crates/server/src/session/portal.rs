//! Prepared statements and portals of a session.

use cairn_sql::{ColumnType, Datum, Statement, Type};

use crate::codec::frontend::Formats;
use crate::error::Failure;
use crate::observer::Observer;
use crate::sqlstate;
use crate::types;

/// A prepared statement, with the parameter types reported to the client.
#[derive(Debug)]
pub struct Prepared {
    /// The statement to run.
    pub statement: Statement,
    /// The OID of each parameter's type, as declared by the client or else inferred from the
    /// statement.
    pub types: Vec<u32>,
    /// Parameters whose type depends on the scale of their values.
    pub unscaled: Option<UnscaledParameters>,
    /// Parameters whose types the server does not know, with the OIDs of these types.
    foreign: Vec<(usize, u32)>,
}

/// Parameters that the client declares as numeric, but that the statement alone would give another
/// type: a text in `SELECT $1`, an integer in `$1 + 1`. Decimals have a fixed scale here, so such a
/// statement is prepared for the scales of its parameter values.
#[derive(Debug)]
pub struct UnscaledParameters {
    /// Types of all parameters with which the statement is prepared.
    pub kinds: Vec<Option<ColumnType>>,
    /// Indices of those parameters.
    pub places: Vec<usize>,
}

impl UnscaledParameters {
    /// The scale while no value is known.
    const SCALE: u8 = 10;

    /// Returns the unscaled parameters of a statement that was prepared with these types; `None` if
    /// the statement itself infers a decimal for every parameter that is declared as numeric.
    pub fn of(
        statement: &Statement,
        given: &[u32],
        kinds: &[Option<ColumnType>],
    ) -> Option<UnscaledParameters> {
        let places: Vec<usize> = statement
            .parameters()
            .iter()
            .enumerate()
            .filter(|(at, kind)| given.get(*at) == Some(&types::oid::NUMERIC) && kind.kind != Type::Decimal)
            .map(|(at, _)| at)
            .collect();
        let mut unscaled = UnscaledParameters { kinds: kinds.to_vec(), places };
        unscaled.set_scales(|_| Some(UnscaledParameters::SCALE));
        (!unscaled.places.is_empty()).then_some(unscaled)
    }

    /// Returns the types for values of these scales. A parameter without a scale keeps its type.
    pub fn with_scales(&self, scale: impl Fn(usize) -> Option<u8>) -> UnscaledParameters {
        let mut unscaled = UnscaledParameters { kinds: self.kinds.clone(), places: self.places.clone() };
        unscaled.set_scales(scale);
        unscaled
    }

    fn set_scales(&mut self, scale: impl Fn(usize) -> Option<u8>) {
        for place in &self.places {
            if let (Some(kind), Some(scale)) = (self.kinds.get_mut(*place), scale(*place)) {
                *kind = Some(ColumnType::decimal(
                    UnscaledParameters::DIGITS,
                    scale.min(UnscaledParameters::DIGITS),
                ));
            }
        }
    }

    /// Maximum number of digits of a decimal.
    const DIGITS: u8 = 38;
}

impl Prepared {
    /// Creates a prepared statement, with the client's types if it declared them.
    pub fn new(statement: Statement, given: &[u32], unscaled: Option<UnscaledParameters>) -> Self {
        let told = |(at, kind): (usize, &ColumnType)| match given.get(at) {
            Some(given) if types::kind_of(*given).is_some() || *given == types::oid::NUMERIC => *given,
            _ => types::oid_of(kind),
        };
        let types = statement.parameters().iter().enumerate().map(told).collect();
        let is_known = |given: u32| types::kind_of(given).is_some() || types::oid::ANY.contains(&given);
        let foreign = given.iter().copied().enumerate().filter(|(_, given)| !is_known(*given)).collect();
        Prepared { statement, types, unscaled, foreign }
    }

    /// Returns the same prepared statement with another plan.
    pub fn again(&self, statement: Statement, unscaled: Option<UnscaledParameters>) -> Self {
        Prepared { foreign: self.foreign.clone(), ..Prepared::new(statement, &self.types, unscaled) }
    }

    /// Checks a parameter with a binary value. The statement can parse the text of an unknown type,
    /// but its binary form would be taken for that of another type.
    ///
    /// Errors: 42704.
    pub fn check_binary(&self, parameter: usize) -> Result<(), Failure> {
        match self.foreign.iter().find(|(at, _)| *at == parameter) {
            None => Ok(()),
            Some((_, type_oid)) => {
                let message = format!("binary values of the type with OID {type_oid} are not supported");
                Err(Failure::new(sqlstate::UNDEFINED_OBJECT, message))
            }
        }
    }
}

/// Formats of the columns of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultFormats {
    /// One format for all columns.
    All {
        /// Whether it is binary.
        is_binary: bool,
    },
    /// A format for each column: whether it is binary.
    Each(Vec<bool>),
}

impl ResultFormats {
    /// The default format.
    pub const TEXT: ResultFormats = ResultFormats::All { is_binary: false };

    /// Takes the formats of a Bind message.
    pub fn new(formats: Formats<'_>) -> Self {
        match formats.len() {
            0 | 1 => ResultFormats::All { is_binary: formats.is_binary(0) },
            count => ResultFormats::Each((0..count).map(|column| formats.is_binary(column)).collect()),
        }
    }

    /// Whether a column is binary.
    #[inline]
    pub fn is_binary(&self, column: usize) -> bool {
        match self {
            ResultFormats::All { is_binary } => *is_binary,
            ResultFormats::Each(each) => each.get(column).copied().unwrap_or_default(),
        }
    }

    /// Whether the formats fit a result of this many columns.
    pub fn fits(&self, columns: usize) -> bool {
        match self {
            ResultFormats::All { .. } => true,
            ResultFormats::Each(each) => each.len() == columns,
        }
    }
}

/// A portal: a statement with its parameters.
#[derive(Debug)]
pub struct Portal {
    /// The statement.
    pub prepared: std::sync::Arc<Prepared>,
    /// Its parameters.
    pub parameters: Vec<Datum>,
    /// Formats of the result columns.
    pub formats: ResultFormats,
    /// The state of its execution.
    pub progress: Progress,
    /// Rows sent to the client so far.
    pub given: u64,
}

/// The state of a portal's execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has not run.
    Ready,
    /// It has returned some of its rows: the cursor with its name and this number has the others.
    /// By now another cursor may have the name.
    Begun(Option<u64>),
    /// It has run to the end.
    Done,
}

/// The result of sending rows.
pub(super) struct SentRows {
    pub rows: u64,
    /// Whether the requested number of rows was sent, so that there may be more.
    pub is_suspended: bool,
}

impl Portal {
    /// Records that rows were sent, and which cursor has the rest. Calls the observer after the
    /// last rows.
    pub(super) fn note(&mut self, sent: &SentRows, cursor: Option<u64>, observer: &Observer) {
        self.given += sent.rows;
        self.progress = if sent.is_suspended { Progress::Begun(cursor) } else { Progress::Done };
        if self.progress == Progress::Done {
            observer.tell(self.prepared.statement.sql(), self.given);
        }
    }

    /// Calls the observer for a portal whose client requests no more rows.
    pub(super) fn report_unfinished(&self, observer: &Observer) {
        if matches!(self.progress, Progress::Begun(_)) {
            observer.tell(self.prepared.statement.sql(), self.given);
        }
    }
}
