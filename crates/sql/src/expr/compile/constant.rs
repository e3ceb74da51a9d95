//! Constant folding.

use crate::datum::Datum;
use crate::error::Error;
use crate::expr::{Cells, Context, Env, Node, Val};

/// Evaluates a constant expression. If that fails, it is left to fail at run time, because it may
/// never be evaluated.
pub(super) fn fold(node: Node) -> Node {
    if matches!(node, Node::Const(_) | Node::Slot { .. } | Node::Param(_)) || !node.is_constant() {
        return node;
    }
    match node.eval_constant() {
        Some(datum) => Node::Const(datum),
        None => node,
    }
}

impl Node {
    /// Returns the value of a constant expression; `None` if its evaluation fails.
    fn eval_constant(&self) -> Option<Datum> {
        let env = Env::new(Cells::None, &[], &NoContext);
        self.eval(&env).ok().map(Val::into_datum)
    }
}

/// The context of constant expressions, which never use it.
#[derive(Debug)]
pub(crate) struct NoContext;

impl Context for NoContext {
    fn transaction_time(&self) -> i64 {
        0
    }

    fn statement_time(&self) -> i64 {
        0
    }

    fn clock_time(&self) -> i64 {
        0
    }

    fn random(&self) -> u64 {
        0
    }

    fn next_value(&self, sequence: &str) -> crate::Result<i64> {
        Err(Error::unsupported(sequence))
    }

    fn current_value(&self, _: Option<&str>) -> crate::Result<i64> {
        Err(Error::unsupported("currval"))
    }

    fn set_value(&self, sequence: &str, _: i64, _: bool) -> crate::Result<i64> {
        Err(Error::unsupported(sequence))
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }
}
