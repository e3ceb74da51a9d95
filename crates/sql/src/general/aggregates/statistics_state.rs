//! The state of variances, covariances and regressions: sums, and sums of squares and products of
//! deviations from the mean.
//!
//! The algorithm is that of Youngs and Cramer (Some Results Relevant to Choice of Sum and
//! Sum-of-Product Algorithms, Technometrics 1971), as in PostgreSQL since version 12. It avoids
//! subtracting large numbers of nearly equal size. Partial states are merged after Chan, Golub and
//! LeVeque (1982). Equal numbers, however many, have a sum of squares of exactly zero, as in
//! PostgreSQL 19; in earlier versions ten times 0.1 had a nonzero one.
//!
//! An overflow of finite numbers is an error. With an infinity or NaN among the numbers, sums of
//! squares are NaN.

use super::sliding::Fold;

/// The state over rows of one or two numbers, and the results computed from it.
pub(crate) trait Moments: Fold {
    /// Numbers per row.
    const ARGUMENTS: usize;
    /// Number of parts of the state.
    const PARTS: usize;

    /// Builds a row from its numbers, if none of them is NULL.
    fn item(number: impl Fn(usize) -> Option<f64>) -> Option<Self::Item>;

    /// Returns the numbers of a row.
    fn numbers(item: Self::Item) -> impl Iterator<Item = f64>;

    /// Returns a part of the state, for serialization.
    fn part(&self, at: usize) -> f64;

    /// Restores the state from its parts.
    fn of_parts(part: impl Fn(usize) -> f64) -> Self;

    /// The number of rows.
    fn count(&self) -> f64;

    /// Computes a result; `None` for NULL.
    fn statistic(&self, statistic: Statistic) -> Option<f64>;
}

/// The result to compute. As in PostgreSQL, the argument y comes before x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    VariancePop,
    Variance,
    DeviationPop,
    Deviation,
    CovariancePop,
    Covariance,
    Correlation,
    Slope,
    Intercept,
    Count,
    R2,
    AverageX,
    AverageY,
    SquaresX,
    SquaresY,
    Products,
}

impl Statistic {
    /// Looks up a statistic by DataFusion's name for it.
    pub fn named(name: &str) -> Option<Statistic> {
        Some(match name {
            "var_pop" => Statistic::VariancePop,
            "var" | "var_samp" => Statistic::Variance,
            "stddev_pop" => Statistic::DeviationPop,
            "stddev" => Statistic::Deviation,
            "covar_pop" => Statistic::CovariancePop,
            "covar_samp" => Statistic::Covariance,
            "corr" => Statistic::Correlation,
            "regr_slope" => Statistic::Slope,
            "regr_intercept" => Statistic::Intercept,
            "regr_count" => Statistic::Count,
            "regr_r2" => Statistic::R2,
            "regr_avgx" => Statistic::AverageX,
            "regr_avgy" => Statistic::AverageY,
            "regr_sxx" => Statistic::SquaresX,
            "regr_syy" => Statistic::SquaresY,
            "regr_sxy" => Statistic::Products,
            _ => return None,
        })
    }

    /// Whether it takes two arguments.
    pub fn is_of_two(self) -> bool {
        use Statistic::{Deviation, DeviationPop, Variance, VariancePop};
        !matches!(self, VariancePop | Variance | DeviationPop | Deviation)
    }
}

/// The state over one column.
#[derive(Debug, Clone, Copy)]
struct Squares {
    sum: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
    /// The common value of all numbers; NaN if they differ.
    common: f64,
}

impl Default for Squares {
    fn default() -> Self {
        Squares { sum: 0.0, squares: 0.0, common: f64::NAN }
    }
}

impl Squares {
    const PARTS: usize = 3;

    /// Returns the state of a single number.
    fn first(number: f64) -> Squares {
        Squares { sum: number, squares: no_number_unless(number.is_finite()), common: number }
    }

    /// Adds a number to `before` others. Also returns the number's deviation from the new mean,
    /// times the new count.
    fn with(self, number: f64, before: f64) -> Option<(Squares, f64)> {
        let count = before + 1.0;
        let sum = self.sum + number;
        let off = number * count - sum;
        let common = if number == self.common { number } else { f64::NAN };
        let squares = match common.is_nan() {
            true => self.squares + off * off / (count * before),
            false => self.squares,
        };
        if !sum.is_infinite() && !squares.is_infinite() {
            return Some((Squares { sum, squares, common }, off));
        }
        // Either finite numbers have overflowed, or there are infinite numbers among them.
        let is_beyond = !self.sum.is_infinite() && !number.is_infinite();
        (!is_beyond).then_some((Squares { sum, squares: f64::NAN, common }, off))
    }

    /// Merges the states of two parts with the given counts. Also returns the difference of their
    /// means.
    fn joined(self, other: Squares, count: f64, others: f64) -> Option<(Squares, f64)> {
        let sum = self.sum + other.sum;
        if sum.is_infinite() && !self.sum.is_infinite() && !other.sum.is_infinite() {
            return None;
        }
        let apart = self.sum / count - other.sum / others;
        let common = if self.common == other.common { self.common } else { f64::NAN };
        let between = match common.is_nan() {
            true => weighed(apart * apart, count, others),
            false => 0.0,
        };
        let squares = self.squares + other.squares + between;
        (!squares.is_infinite()).then_some((Squares { sum, squares, common }, apart))
    }

    fn part(&self, at: usize) -> f64 {
        match at {
            0 => self.sum,
            1 => self.squares,
            _ => self.common,
        }
    }

    fn of_parts(part: impl Fn(usize) -> f64) -> Squares {
        Squares { sum: part(0), squares: part(1), common: part(2) }
    }
}

/// Returns the contribution of the difference between two means to the merged sum of squares or
/// products.
fn weighed(product: f64, count: f64, others: f64) -> f64 {
    count * others * product / (count + others)
}

fn no_number_unless(is_finite: bool) -> f64 {
    if is_finite { 0.0 } else { f64::NAN }
}

/// Divides a total by the number of rows minus `less`; `None` if that is not positive.
fn shared(total: f64, count: f64, less: f64) -> Option<f64> {
    (count > less).then(|| total / (count - less))
}

/// The state over rows of one number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OneVariable {
    count: f64,
    of: Squares,
}

impl Fold for OneVariable {
    type Item = f64;

    #[inline]
    fn with(self, item: f64) -> Option<OneVariable> {
        let of = match self.count > 0.0 {
            true => self.of.with(item, self.count)?.0,
            false => Squares::first(item),
        };
        Some(OneVariable { count: self.count + 1.0, of })
    }

    fn joined(self, other: OneVariable) -> Option<OneVariable> {
        if self.count == 0.0 {
            return Some(other);
        }
        if other.count == 0.0 {
            return Some(self);
        }
        let (of, _) = self.of.joined(other.of, self.count, other.count)?;
        Some(OneVariable { count: self.count + other.count, of })
    }
}

impl Moments for OneVariable {
    const ARGUMENTS: usize = 1;
    const PARTS: usize = 1 + Squares::PARTS;

    #[inline]
    fn item(number: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        number(0)
    }

    fn numbers(item: f64) -> impl Iterator<Item = f64> {
        [item].into_iter()
    }

    fn part(&self, at: usize) -> f64 {
        match at.checked_sub(1) {
            None => self.count,
            Some(at) => self.of.part(at),
        }
    }

    fn of_parts(part: impl Fn(usize) -> f64) -> OneVariable {
        OneVariable { count: part(0), of: Squares::of_parts(|at| part(1 + at)) }
    }

    fn count(&self) -> f64 {
        self.count
    }

    fn statistic(&self, statistic: Statistic) -> Option<f64> {
        match statistic {
            Statistic::VariancePop => shared(self.of.squares, self.count, 0.0),
            Statistic::Variance => shared(self.of.squares, self.count, 1.0),
            Statistic::DeviationPop => shared(self.of.squares, self.count, 0.0).map(f64::sqrt),
            Statistic::Deviation => shared(self.of.squares, self.count, 1.0).map(f64::sqrt),
            _ => None,
        }
    }
}

/// The state over rows of two numbers, y and x.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TwoVariables {
    count: f64,
    y: Squares,
    x: Squares,
    /// Sum of the products of the deviations of y and x from their means.
    products: f64,
}

impl Fold for TwoVariables {
    type Item = (f64, f64);

    #[inline]
    fn with(self, (y, x): (f64, f64)) -> Option<TwoVariables> {
        let count = self.count + 1.0;
        if self.count == 0.0 {
            let products = no_number_unless(y.is_finite() && x.is_finite());
            return Some(TwoVariables { count, y: Squares::first(y), x: Squares::first(x), products });
        }
        let is_infinite =
            self.y.sum.is_infinite() || self.x.sum.is_infinite() || y.is_infinite() || x.is_infinite();
        let (of_y, y_off) = self.y.with(y, self.count)?;
        let (of_x, x_off) = self.x.with(x, self.count)?;
        let is_flat = !of_y.common.is_nan() || !of_x.common.is_nan();
        let mut products = match is_flat {
            _ if !y.is_finite() || !x.is_finite() => f64::NAN,
            true => self.products,
            false => self.products + y_off * x_off / (count * self.count),
        };
        if products.is_infinite() {
            if !is_infinite {
                return None;
            }
            products = f64::NAN;
        }
        Some(TwoVariables { count, y: of_y, x: of_x, products })
    }

    fn joined(self, other: TwoVariables) -> Option<TwoVariables> {
        if self.count == 0.0 {
            return Some(other);
        }
        if other.count == 0.0 {
            return Some(self);
        }
        let (y, y_apart) = self.y.joined(other.y, self.count, other.count)?;
        let (x, x_apart) = self.x.joined(other.x, self.count, other.count)?;
        let is_flat = !y.common.is_nan() || !x.common.is_nan();
        let between = match is_flat {
            true => 0.0,
            false => weighed(y_apart * x_apart, self.count, other.count),
        };
        let products = self.products + other.products + between;
        (!products.is_infinite()).then_some(TwoVariables { count: self.count + other.count, y, x, products })
    }
}

impl Moments for TwoVariables {
    const ARGUMENTS: usize = 2;
    const PARTS: usize = 2 + 2 * Squares::PARTS;

    #[inline]
    fn item(number: impl Fn(usize) -> Option<f64>) -> Option<(f64, f64)> {
        number(0).zip(number(1))
    }

    fn numbers((y, x): (f64, f64)) -> impl Iterator<Item = f64> {
        [y, x].into_iter()
    }

    fn part(&self, at: usize) -> f64 {
        match at {
            0 => self.count,
            1 => self.products,
            2..=4 => self.y.part(at - 2),
            _ => self.x.part(at - 5),
        }
    }

    fn of_parts(part: impl Fn(usize) -> f64) -> TwoVariables {
        TwoVariables {
            count: part(0),
            products: part(1),
            y: Squares::of_parts(|at| part(2 + at)),
            x: Squares::of_parts(|at| part(5 + at)),
        }
    }

    fn count(&self) -> f64 {
        self.count
    }

    fn statistic(&self, statistic: Statistic) -> Option<f64> {
        let (x, y) = (self.x.squares, self.y.squares);
        let total = |total| (self.count > 0.0).then_some(total);
        match statistic {
            Statistic::CovariancePop => shared(self.products, self.count, 0.0),
            Statistic::Covariance => shared(self.products, self.count, 1.0),
            Statistic::AverageX => shared(self.x.sum, self.count, 0.0),
            Statistic::AverageY => shared(self.y.sum, self.count, 0.0),
            Statistic::SquaresX => total(x),
            Statistic::SquaresY => total(y),
            Statistic::Products => total(self.products),
            // Without points, or with a vertical line, there is no slope.
            _ if self.count == 0.0 || x == 0.0 => None,
            Statistic::Slope => Some(self.products / x),
            Statistic::Intercept => Some((self.y.sum - self.x.sum * self.products / x) / self.count),
            Statistic::R2 if y == 0.0 => Some(1.0),
            Statistic::R2 => {
                let (above, below) = (self.products * self.products, x * y);
                // Divide separately where the products overflow or underflow.
                let whole = above.is_normal() && below.is_normal();
                Some(if whole { above / below } else { self.products / x * (self.products / y) })
            }
            Statistic::Correlation if y == 0.0 => None,
            Statistic::Correlation => {
                let product = x * y;
                let root = if product.is_normal() { product.sqrt() } else { x.sqrt() * y.sqrt() };
                Some((self.products / root).clamp(-1.0, 1.0))
            }
            _ => None,
        }
    }
}
