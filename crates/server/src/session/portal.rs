//! Prepared statements and portals of a session.

use cairn_sql::{ColumnType, Datum, Statement, Type};

use crate::codec::frontend::Formats;
use crate::error::Failure;
use crate::observer::Observer;
use crate::sqlstate;
use crate::types;

use super::execute::Sent;

/// A prepared statement, with the types that the client was told.
#[derive(Debug)]
pub struct Prepared {
    /// What runs.
    pub statement: Statement,
    /// The number of each parameter's type: the client's word, or what the statement made of it.
    pub types: Vec<u32>,
    /// What depends on digits that only values have.
    pub loose: Option<Loose>,
    /// Parameters of types that are not known here, and the numbers of these.
    foreign: Vec<(usize, u32)>,
}

/// Parameters that the client calls numeric where the statement alone would make something else of
/// them: a text of `SELECT $1`, an integer of `$1 + 1`. A decimal has a fixed scale here, so such a
/// statement is prepared for the scales of the values that it gets.
#[derive(Debug)]
pub struct Loose {
    /// Types of all parameters, as the statement is prepared.
    pub kinds: Vec<Option<ColumnType>>,
    /// Which of them are meant.
    pub places: Vec<usize>,
}

impl Loose {
    /// Digits behind the point as long as no value is known.
    const SCALE: u8 = 10;

    /// Of a statement that was prepared with these types; `None` where its own word for each
    /// numeric is a decimal.
    pub fn of(statement: &Statement, given: &[u32], kinds: &[Option<ColumnType>]) -> Option<Loose> {
        let places: Vec<usize> = statement
            .parameters()
            .iter()
            .enumerate()
            .filter(|(at, kind)| given.get(*at) == Some(&types::oid::NUMERIC) && kind.kind != Type::Decimal)
            .map(|(at, _)| at)
            .collect();
        let mut loose = Loose { kinds: kinds.to_vec(), places };
        loose.set_scales(|_| Some(Loose::SCALE));
        (!loose.places.is_empty()).then_some(loose)
    }

    /// Types for values of these scales; a parameter without one stays as it is.
    pub fn with_scales(&self, scale: impl Fn(usize) -> Option<u8>) -> Loose {
        let mut loose = Loose { kinds: self.kinds.clone(), places: self.places.clone() };
        loose.set_scales(scale);
        loose
    }

    fn set_scales(&mut self, scale: impl Fn(usize) -> Option<u8>) {
        for place in &self.places {
            if let (Some(kind), Some(scale)) = (self.kinds.get_mut(*place), scale(*place)) {
                *kind = Some(ColumnType::decimal(Loose::DIGITS, scale.min(Loose::DIGITS)));
            }
        }
    }

    /// The most digits.
    const DIGITS: u8 = 38;
}

impl Prepared {
    /// Takes the client's types where it gave them.
    pub fn new(statement: Statement, given: &[u32], loose: Option<Loose>) -> Self {
        let told = |(at, kind): (usize, &ColumnType)| match given.get(at) {
            Some(given) if types::kind_of(*given).is_some() || *given == types::oid::NUMERIC => *given,
            _ => types::oid_of(kind),
        };
        let types = statement.parameters().iter().enumerate().map(told).collect();
        let is_known = |given: u32| types::kind_of(given).is_some() || types::oid::ANY.contains(&given);
        let foreign = given.iter().copied().enumerate().filter(|(_, given)| !is_known(*given)).collect();
        Prepared { statement, types, loose, foreign }
    }

    /// As the client prepared it, with another plan.
    pub fn again(&self, statement: Statement, loose: Option<Loose>) -> Self {
        Prepared { foreign: self.foreign.clone(), ..Prepared::new(statement, &self.types, loose) }
    }

    /// Looks at a parameter whose value is binary. The text of a type that is not known here is the
    /// statement's to read, but its binary form would be taken for another type's.
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

/// How the columns of a result are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultFormats {
    /// All the same.
    All {
        /// Whether that is binary.
        is_binary: bool,
    },
    /// Each its own: whether it is binary.
    Each(Vec<bool>),
}

impl ResultFormats {
    /// What a client gets that says nothing else.
    pub const TEXT: ResultFormats = ResultFormats::All { is_binary: false };

    /// As a Bind has them.
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

    /// Whether they fit a result of so many columns.
    pub fn fits(&self, columns: usize) -> bool {
        match self {
            ResultFormats::All { .. } => true,
            ResultFormats::Each(each) => each.len() == columns,
        }
    }
}

/// A statement with its parameters.
#[derive(Debug)]
pub struct Portal {
    /// The statement.
    pub prepared: std::sync::Arc<Prepared>,
    /// Its parameters.
    pub parameters: Vec<Datum>,
    /// How rows are written.
    pub formats: ResultFormats,
    /// How far it is.
    pub progress: Progress,
    /// Rows that the client got.
    pub given: u64,
}

/// How far a portal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It has not run.
    Ready,
    /// It has run in part: a cursor of its name and of this number has the rows that are left.
    /// Another one may have the name by now.
    Begun(Option<u64>),
    /// It has run to its end.
    Done,
}

impl Portal {
    /// Notes that some of its rows were sent, and which cursor has the others. Whoever observes
    /// statements is told when these were the last.
    pub(super) fn note(&mut self, sent: &Sent, cursor: Option<u64>, observer: &Observer) {
        self.given += sent.rows;
        self.progress = if sent.is_suspended { Progress::Begun(cursor) } else { Progress::Done };
        if self.progress == Progress::Done {
            observer.tell(self.prepared.statement.sql(), self.given);
        }
    }

    /// Whoever observes statements is told of one whose client wants no more of its rows.
    pub(super) fn give_up(&self, observer: &Observer) {
        if matches!(self.progress, Progress::Begun(_)) {
            observer.tell(self.prepared.statement.sql(), self.given);
        }
    }
}
