//! Compiled expressions.

use cairn_table::schema::ColumnType;

use super::functions::Function;
use super::operator::{Comparison, Operator};
use crate::datum::Datum;
use crate::syntax::deeper;

/// An expression whose types have been resolved: the operands of a comparison or an operator have
/// the types that it takes.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Const(Datum),
    /// A column of the current row. The slots after those of the row are columns of the row
    /// proposed for insertion. `scale` is that of a decimal.
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
    /// IS [NOT] DISTINCT FROM.
    Distinct {
        pair: Box<[Node; 2]>,
        negated: bool,
    },
    IsNull {
        operand: Box<Node>,
        negated: bool,
    },
    /// IS TRUE, IS NOT FALSE and the like.
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
    Call(&'static Function, Vec<Node>),
    /// Equivalent to the inner node, which has many levels. Functions that descend into it first
    /// make room on the stack.
    Deep(Box<Node>),
}

/// The number of levels to descend without checking the stack.
pub(super) const LEVELS: usize = 64;

impl Node {
    /// Whether it is a constant, column or parameter, which needs no computation.
    pub fn is_plain(&self) -> bool {
        matches!(self, Node::Const(_) | Node::Slot { .. } | Node::Param(_))
    }

    /// Calls `each` for the node and all its descendants.
    pub fn walk(&self, each: &mut dyn FnMut(&Node)) {
        each(self);
        match self {
            Node::Deep(inner) => deeper(LEVELS, || inner.walk(each)),
            _ => self.parts(&mut |part| part.walk(each)),
        }
    }

    /// Calls `each` for the children.
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

    /// Wraps the node in [`Node::Deep`] if it is too deep to descend without checking the stack.
    pub fn with_care(self) -> Node {
        if self.is_high(LEVELS) { Node::Deep(Box::new(self)) } else { self }
    }

    /// Whether the node has more than `levels` levels, not counting those below a [`Node::Deep`].
    fn is_high(&self, levels: usize) -> bool {
        let Some(below) = levels.checked_sub(1) else { return true };
        let mut is_high = false;
        if !matches!(self, Node::Deep(_)) {
            self.parts(&mut |part| is_high = is_high || part.is_high(below));
        }
        is_high
    }

    /// Like [`Node::walk`], but `each` may change nodes. A replacement is not visited again.
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

    /// Whether it reads no column.
    pub fn is_free(&self) -> bool {
        let mut free = true;
        self.walk(&mut |node| free &= !matches!(node, Node::Slot { .. }));
        free
    }

    /// Whether its value never changes: it has no columns, no parameters and no volatile or stable
    /// functions.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |node| {
            constant &= match node {
                Node::Slot { .. } | Node::Param(_) => false,
                Node::Call(function, _) => function.is_immutable(),
                _ => true,
            };
        });
        constant
    }

    /// Whether each evaluation may return another value.
    pub fn is_volatile(&self) -> bool {
        let mut volatile = false;
        self.walk(&mut |node| volatile |= matches!(node, Node::Call(function, _) if function.is_volatile()));
        volatile
    }

    /// Whether it reads parameters.
    pub fn has_params(&self) -> bool {
        let mut has = false;
        self.walk(&mut |node| has |= matches!(node, Node::Param(_)));
        has
    }

    /// Splits a condition into the conjuncts that must all be true.
    pub fn conjuncts(self) -> Vec<Node> {
        match self {
            Node::And(all) => all.into_iter().flat_map(Node::conjuncts).collect(),
            node => vec![node],
        }
    }

    /// Returns the conjunction of conditions; `None` if there are none.
    pub fn all(mut nodes: Vec<Node>) -> Option<Node> {
        match nodes.len() {
            0 | 1 => nodes.pop(),
            _ => Some(Node::And(nodes)),
        }
    }
}
