//! Compiled expressions.

use cairn_table::schema::ColumnType;

use super::Function;
use crate::datum::Datum;
use crate::syntax::deeper;

/// An expression whose types are settled: operands of a comparison or operator have the type that
/// it works on.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Const(Datum),
    /// A column of the row at hand, or of the row that was to be inserted behind it. `scale` is for
    /// decimals.
    Slot {
        slot: usize,
        scale: u8,
    },
    /// `$1` is 0.
    Param(usize),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Compare(Comparison, Box<[Node; 2]>),
    /// IS DISTINCT FROM, or IS NOT.
    Distinct {
        pair: Box<[Node; 2]>,
        negated: bool,
    },
    IsNull {
        operand: Box<Node>,
        negated: bool,
    },
    /// IS TRUE, IS NOT FALSE.
    IsTruth {
        operand: Box<Node>,
        truth: bool,
        negated: bool,
    },
    Binary(Operator, Box<[Node; 2]>),
    Negate(Box<Node>),
    Cast {
        operand: Box<Node>,
        to: ColumnType,
    },
    Case {
        whens: Vec<(Node, Node)>,
        otherwise: Option<Box<Node>>,
    },
    Coalesce(Vec<Node>),
    NullIf(Box<[Node; 2]>),
    In {
        operand: Box<Node>,
        list: Vec<Node>,
        negated: bool,
    },
    Like {
        pair: Box<[Node; 2]>,
        escape: Option<char>,
        insensitive: bool,
        negated: bool,
    },
    Call(Function, Vec<Node>),
    /// The same as what is in it, which has many levels: it is looked at where there is room on the
    /// stack for them.
    Deep(Box<Node>),
}

/// Levels that are gone into without a look at the stack.
pub(super) const LEVELS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The one that says the same with its sides exchanged.
    pub fn flipped(self) -> Self {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessOrEqual => Comparison::GreaterOrEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterOrEqual => Comparison::LessOrEqual,
            same => same,
        }
    }
}

/// Operators with two operands that give a value, NULL for NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Concat,
}

impl Node {
    /// Whether its value is there, in a row or beside it, and takes no computing.
    pub fn is_plain(&self) -> bool {
        matches!(self, Node::Const(_) | Node::Slot { .. } | Node::Param(_))
    }

    /// Looks at it and everything within.
    pub fn walk(&self, each: &mut dyn FnMut(&Node)) {
        each(self);
        match self {
            Node::Deep(inner) => deeper(LEVELS, || inner.walk(each)),
            _ => self.parts(&mut |part| part.walk(each)),
        }
    }

    /// What it is made of.
    fn parts(&self, each: &mut dyn FnMut(&Node)) {
        match self {
            Node::Const(_) | Node::Slot { .. } | Node::Param(_) => {}
            Node::Not(a) | Node::Negate(a) | Node::Deep(a) => each(a),
            Node::IsNull { operand, .. } | Node::IsTruth { operand, .. } | Node::Cast { operand, .. } => {
                each(operand)
            }
            Node::And(all) | Node::Or(all) | Node::Coalesce(all) | Node::Call(_, all) => {
                all.iter().for_each(each);
            }
            Node::Compare(_, pair)
            | Node::Binary(_, pair)
            | Node::NullIf(pair)
            | Node::Distinct { pair, .. }
            | Node::Like { pair, .. } => pair.iter().for_each(each),
            Node::Case { whens, otherwise } => {
                for (when, then) in whens {
                    each(when);
                    each(then);
                }
                if let Some(otherwise) = otherwise {
                    each(otherwise);
                }
            }
            Node::In { operand, list, .. } => {
                each(operand);
                list.iter().for_each(each);
            }
        }
    }

    /// The same, looked at with care where it has become so deep that somebody should.
    pub fn with_care(self) -> Node {
        if self.is_high(LEVELS) { Node::Deep(Box::new(self)) } else { self }
    }

    /// Whether it has more levels than so many, down to those that are looked at with care.
    fn is_high(&self, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else { return true };
        let mut is_high = false;
        if !matches!(self, Node::Deep(_)) {
            self.parts(&mut |part| is_high = is_high || part.is_high(below));
        }
        is_high
    }

    /// As [`Node::walk`], and may change what it looks at; what it makes of a part is not looked at
    /// again.
    pub fn change(&mut self, each: &mut dyn FnMut(&mut Node)) {
        match self {
            Node::Const(_) | Node::Slot { .. } | Node::Param(_) => {}
            Node::Deep(a) => deeper(LEVELS, || a.change(each)),
            Node::Not(a) | Node::Negate(a) => a.change(each),
            Node::IsNull { operand, .. } | Node::IsTruth { operand, .. } | Node::Cast { operand, .. } => {
                operand.change(each)
            }
            Node::And(all) | Node::Or(all) | Node::Coalesce(all) | Node::Call(_, all) => {
                all.iter_mut().for_each(|node| node.change(each));
            }
            Node::Compare(_, pair)
            | Node::Binary(_, pair)
            | Node::NullIf(pair)
            | Node::Distinct { pair, .. }
            | Node::Like { pair, .. } => pair.iter_mut().for_each(|node| node.change(each)),
            Node::Case { whens, otherwise } => {
                for (when, then) in whens {
                    when.change(each);
                    then.change(each);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.change(each);
                }
            }
            Node::In { operand, list, .. } => {
                operand.change(each);
                list.iter_mut().for_each(|node| node.change(each));
            }
        }
        each(self);
    }

    /// Whether it looks at no column.
    pub fn is_free(&self) -> bool {
        let mut free = true;
        self.walk(&mut |node| free &= !matches!(node, Node::Slot { .. }));
        free
    }

    /// Whether it is the same whenever it is computed: no columns, no parameters, nothing that
    /// changes by itself.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |node| {
            constant &= match node {
                Node::Slot { .. } | Node::Param(_) => false,
                Node::Call(function, _) => !function.is_volatile() && !function.is_stable(),
                _ => true,
            };
        });
        constant
    }

    /// Whether it gives something else each time.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.walk(&mut |node| volatile |= matches!(node, Node::Call(function, _) if function.is_volatile()));
        volatile
    }

    /// Whether it looks at parameters.
    pub fn has_params(&self) -> bool {
        let mut has = false;
        self.walk(&mut |node| has |= matches!(node, Node::Param(_)));
        has
    }

    /// The parts of a condition all of which must be true.
    pub fn conjuncts(self) -> Vec<Node> {
        match self {
            Node::And(all) => all.into_iter().flat_map(Node::conjuncts).collect(),
            node => vec![node],
        }
    }

    /// The condition that all of these are true; `None` for none.
    pub fn all(mut nodes: Vec<Node>) -> Option<Node> {
        match nodes.len() {
            0 | 1 => nodes.pop(),
            _ => Some(Node::And(nodes)),
        }
    }
}
