//! Walks over DataFusion's plans and expressions, each compiled once.
//!
//! DataFusion's walks are generic over the closure that they call, and each instance has the whole
//! match over all kinds of nodes. These call closures through `dyn`: one instance for all callers,
//! at the cost of an indirect call for each node.

#![allow(clippy::disallowed_methods, reason = "the one place that instantiates the walks")]

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

type Change<'f, N> = &'f mut dyn FnMut(N) -> Result<Transformed<N>>;
type Look<'f, 'n, N> = &'f mut dyn FnMut(&'n N) -> Result<TreeNodeRecursion>;

/// Walks over expressions and plans, logical and physical.
pub(crate) trait Walk: TreeNode {
    /// [`TreeNode::transform_up`]: a node after those below it.
    fn walk_up(self, mut f: impl FnMut(Self) -> Result<Transformed<Self>>) -> Result<Transformed<Self>> {
        let f: Change<'_, Self> = &mut f;
        self.transform_up(f)
    }

    /// [`TreeNode::transform_down`]: a node before those below it.
    fn walk_down(self, mut f: impl FnMut(Self) -> Result<Transformed<Self>>) -> Result<Transformed<Self>> {
        let f: Change<'_, Self> = &mut f;
        self.transform_down(f)
    }

    /// [`TreeNode::map_children`]: the nodes directly below.
    fn walk_children(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Change<'_, Self> = &mut f;
        self.map_children(f)
    }

    /// [`TreeNode::apply`]: looks at a node before those below it.
    fn look<'n>(
        &'n self,
        mut f: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let f: Look<'_, 'n, Self> = &mut f;
        self.apply(f)
    }

    /// [`TreeNode::exists`]: whether `f` holds for the node or one below it.
    fn holds(&self, mut f: impl FnMut(&Self) -> Result<bool>) -> Result<bool> {
        let f: &mut dyn FnMut(&Self) -> Result<bool> = &mut f;
        self.exists(f)
    }
}

impl<N: TreeNode> Walk for N {}

/// Walks over plans that also reach their expressions and subqueries.
pub(crate) trait WalkPlan: Sized {
    /// [`LogicalPlan::transform_up_with_subqueries`].
    fn walk_up_with_subqueries(
        self,
        f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    /// [`LogicalPlan::transform_down_with_subqueries`].
    fn walk_down_with_subqueries(
        self,
        f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;

    /// [`LogicalPlan::map_subqueries`]: the subqueries of the node's own expressions.
    fn walk_subqueries(self, f: impl FnMut(Self) -> Result<Transformed<Self>>) -> Result<Transformed<Self>>;

    /// [`LogicalPlan::map_expressions`]: the node's own expressions.
    fn walk_expressions(self, f: impl FnMut(Expr) -> Result<Transformed<Expr>>) -> Result<Transformed<Self>>;

    /// [`LogicalPlan::apply_with_subqueries`].
    fn look_with_subqueries(
        &self,
        f: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;

    /// [`LogicalPlan::apply_expressions`].
    fn look_at_expressions(
        &self,
        f: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;
}

impl WalkPlan for LogicalPlan {
    fn walk_up_with_subqueries(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Change<'_, Self> = &mut f;
        self.transform_up_with_subqueries(f)
    }

    fn walk_down_with_subqueries(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Change<'_, Self> = &mut f;
        self.transform_down_with_subqueries(f)
    }

    fn walk_subqueries(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Change<'_, Self> = &mut f;
        self.map_subqueries(f)
    }

    fn walk_expressions(
        self,
        mut f: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>> {
        let f: Change<'_, Expr> = &mut f;
        self.map_expressions(f)
    }

    fn look_with_subqueries(
        &self,
        mut f: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let f: &mut dyn FnMut(&Self) -> Result<TreeNodeRecursion> = &mut f;
        self.apply_with_subqueries(f)
    }

    fn look_at_expressions(
        &self,
        mut f: impl FnMut(&Expr) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let f: &mut dyn FnMut(&Expr) -> Result<TreeNodeRecursion> = &mut f;
        self.apply_expressions(f)
    }
}
