//! Walks over parsed statements, each compiled once.
//!
//! `sqlparser` generates its walk anew for every type of visitor, several hundred functions each
//! time. Here visitors are called through `dyn`, which leaves one walk that reads and one that
//! changes. The other walks took half of this crate's compile time.

#![allow(clippy::disallowed_methods, reason = "the one place that instantiates the walks")]

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};

/// Visits everything below a node, as [`Visit::visit`] does.
pub(crate) fn visit<N: Visit, B>(node: &N, visitor: &mut dyn Visitor<Break = B>) -> ControlFlow<B> {
    node.visit(&mut Shared(visitor))
}

/// Visits everything below a node and may change it, as [`VisitMut::visit`] does.
pub(crate) fn visit_mut<N: VisitMut, B>(
    node: &mut N,
    visitor: &mut dyn VisitorMut<Break = B>,
) -> ControlFlow<B> {
    node.visit(&mut SharedMut(visitor))
}

/// Calls `f` for each expression, outer ones before inner ones:
/// [`sqlparser::ast::visit_expressions`].
pub(crate) fn visit_expressions<N: Visit, B>(
    node: &N,
    f: impl FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
            self.0(expr)
        }
    }
    visit(node, &mut Each(f))
}

/// Calls `f` for each expression, inner ones before outer ones:
/// [`sqlparser::ast::visit_expressions_mut`].
pub(crate) fn visit_expressions_mut<N: VisitMut, B>(
    node: &mut N,
    f: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for Each<F> {
        type Break = B;

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
            self.0(expr)
        }
    }
    visit_mut(node, &mut Each(f))
}

/// Calls `f` for the name of each relation: [`sqlparser::ast::visit_relations`].
pub(crate) fn visit_relations<N: Visit, B>(
    node: &N,
    f: impl FnMut(&ObjectName) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Each<F>(F);
    impl<B, F: FnMut(&ObjectName) -> ControlFlow<B>> Visitor for Each<F> {
        type Break = B;

        fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<B> {
            self.0(name)
        }
    }
    visit(node, &mut Each(f))
}

/// Forwards each call.
macro_rules! hands_on {
    ($($name:ident: $node:ty),+ $(,)?) => {
        $(
            fn $name(&mut self, node: $node) -> ControlFlow<B> {
                self.0.$name(node)
            }
        )+
    };
}

struct Shared<'v, B>(&'v mut dyn Visitor<Break = B>);

impl<B> Visitor for Shared<'_, B> {
    type Break = B;

    hands_on! {
        pre_visit_query: &Query, post_visit_query: &Query,
        pre_visit_select: &Select, post_visit_select: &Select,
        pre_visit_relation: &ObjectName, post_visit_relation: &ObjectName,
        pre_visit_table_factor: &TableFactor, post_visit_table_factor: &TableFactor,
        pre_visit_expr: &Expr, post_visit_expr: &Expr,
        pre_visit_statement: &Statement, post_visit_statement: &Statement,
        pre_visit_value: &ValueWithSpan, post_visit_value: &ValueWithSpan,
    }
}

struct SharedMut<'v, B>(&'v mut dyn VisitorMut<Break = B>);

impl<B> VisitorMut for SharedMut<'_, B> {
    type Break = B;

    hands_on! {
        pre_visit_query: &mut Query, post_visit_query: &mut Query,
        pre_visit_select: &mut Select, post_visit_select: &mut Select,
        pre_visit_relation: &mut ObjectName, post_visit_relation: &mut ObjectName,
        pre_visit_table_factor: &mut TableFactor, post_visit_table_factor: &mut TableFactor,
        pre_visit_expr: &mut Expr, post_visit_expr: &mut Expr,
        pre_visit_statement: &mut Statement, post_visit_statement: &mut Statement,
        pre_visit_value: &mut ValueWithSpan, post_visit_value: &mut ValueWithSpan,
    }
}
