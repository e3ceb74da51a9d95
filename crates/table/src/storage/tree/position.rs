//! The position of a key in a tree, as a fraction of its records.

use std::ops::Bound;

use super::Tree;
use crate::Result;
use crate::storage::node::Node;

impl Tree {
    /// Estimates the fraction of records in a range from the positions of its ends among the
    /// children on the paths to them, as if all nodes of a level had equally many (InnoDB calls
    /// this a dive). Exact to one or two leaves; 0 if both ends are in one leaf. Cost: two
    /// descents. Errors: the pool's, [`Error::Corruption`](crate::Error::Corruption).
    pub(crate) fn fraction(&self, (start, end): (Bound<&[u8]>, Bound<&[u8]>)) -> Result<f64> {
        let place = |bound, otherwise| match bound {
            Bound::Unbounded => Ok(otherwise),
            Bound::Included(key) | Bound::Excluded(key) => self.position(key),
        };
        Ok((place(end, 1.0)? - place(start, 0.0)?).max(0.0))
    }

    /// Returns the fraction of leaves before the one that holds a key.
    fn position(&self, key: &[u8]) -> Result<f64> {
        self.attempt(|| {
            let mut view = self.view(self.root)?;
            let mut level = self.level(&view)?;
            let (mut place, mut width) = (0.0, 1.0);
            while level > 0 {
                let node = Node(&view);
                let count = self.sound(&view, node.count())?;
                let (child, at) = self.sound(&view, node.child_of(key))?;
                width /= (count + 1) as f64;
                place += width * at as f64;
                view = self.below(&view, level, child)?;
                level -= 1;
            }
            debug_assert!((0.0..=1.0 + 1e-9).contains(&place), "a key is at {place} of its tree");
            Ok(place)
        })
    }
}
