//! ARC from figure 4 of the paper, over vectors. The newest page is first.

use super::models::Model;

#[derive(Default)]
pub(super) struct Arc {
    c: usize,
    p: usize,
    t1: Vec<u64>,
    t2: Vec<u64>,
    b1: Vec<u64>,
    b2: Vec<u64>,
    /// The page for which the eviction before its insertion has adapted `p` already.
    adapted: Option<u64>,
}

fn oldest(list: &mut Vec<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
    for _ in 0..list.len() {
        let page = list.pop()?;
        if claim(page) {
            return Some(page);
        }
        list.insert(0, page);
    }
    None
}

impl Arc {
    pub(super) fn new(c: usize) -> Self {
        Arc { c, ..Arc::default() }
    }

    /// Cases II and III.
    fn adapt(&mut self, page: u64) {
        let (b1, b2) = (self.b1.len(), self.b2.len());
        if self.b1.contains(&page) {
            let by = if b1 >= b2 { 1 } else { b2 / b1 };
            self.p = (self.p + by).min(self.c);
        } else if self.b2.contains(&page) {
            let by = if b2 >= b1 { 1 } else { b1 / b2 };
            self.p = self.p.saturating_sub(by);
        }
    }

    fn demote(&mut self, first: bool, remember: bool, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        let (from, to) = if first { (&mut self.t1, &mut self.b1) } else { (&mut self.t2, &mut self.b2) };
        let page = oldest(from, claim)?;
        if remember {
            to.insert(0, page);
        }
        Some(page)
    }
}

impl Model for Arc {
    fn hit(&mut self, page: u64) {
        self.t1.retain(|&other| other != page);
        self.t2.retain(|&other| other != page);
        self.t2.insert(0, page);
    }

    fn evict(&mut self, incoming: Option<u64>, claim: &dyn Fn(u64) -> bool) -> Option<u64> {
        let known = |list: &[u64]| incoming.is_some_and(|page| list.contains(&page));
        let (in_b1, in_b2) = (known(&self.b1), known(&self.b2));
        let mut remember = true;
        if in_b1 || in_b2 {
            if self.adapted != incoming {
                incoming.into_iter().for_each(|page| self.adapt(page));
                self.adapted = incoming;
            }
        } else if self.t1.len() + self.b1.len() >= self.c {
            if self.t1.len() < self.c {
                self.b1.pop();
            } else {
                remember = false;
            }
        } else if self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len() >= 2 * self.c {
            self.b2.pop();
        }
        let t1 = self.t1.len();
        let first = t1 >= 1 && (!remember || (in_b2 && t1 == self.p) || t1 > self.p);
        let victim = self.demote(first, remember, claim);
        victim.or_else(|| self.demote(!first, remember, claim))
    }

    fn insert(&mut self, page: u64) {
        if self.adapted.take() != Some(page) {
            self.adapt(page);
        }
        let known = self.b1.contains(&page) || self.b2.contains(&page);
        self.b1.retain(|&other| other != page);
        self.b2.retain(|&other| other != page);
        if known { &mut self.t2 } else { &mut self.t1 }.insert(0, page);
        self.bound();
    }

    fn remove(&mut self, page: u64) {
        self.t1.retain(|&other| other != page);
        self.t2.retain(|&other| other != page);
    }

    fn resize(&mut self, c: usize) {
        self.c = c;
        self.p = self.p.min(c);
        self.bound();
    }
}

impl Arc {
    /// Restores the bounds that the paper proves and that removals or resizes may break: |L1| <= c
    /// and |L1| + |L2| <= 2 c.
    fn bound(&mut self) {
        while !self.b1.is_empty() && self.t1.len() + self.b1.len() > self.c {
            self.b1.pop();
        }
        let known = |arc: &Arc| arc.t1.len() + arc.t2.len() + arc.b1.len() + arc.b2.len();
        while !self.b2.is_empty() && known(self) > 2 * self.c {
            self.b2.pop();
        }
    }
}

/// Returns the hits of figure 4 exactly as published, with one request after the other and nothing
/// pinned.
pub(super) fn paper_hits(requests: &[u64], c: usize) -> u64 {
    let mut arc = Arc::new(c);
    let all = |_: u64| true;
    let mut hits = 0;
    for &x in requests {
        if arc.t1.contains(&x) || arc.t2.contains(&x) {
            hits += 1;
            arc.hit(x);
            continue;
        }
        let (in_b1, in_b2) = (arc.b1.contains(&x), arc.b2.contains(&x));
        let replace = |arc: &mut Arc| {
            let t1 = arc.t1.len();
            let first = t1 >= 1 && ((in_b2 && t1 == arc.p) || t1 > arc.p);
            arc.demote(first, true, &all);
        };
        if in_b1 || in_b2 {
            arc.adapt(x);
            replace(&mut arc);
            arc.b1.retain(|&other| other != x);
            arc.b2.retain(|&other| other != x);
            arc.t2.insert(0, x);
            continue;
        }
        let l1 = arc.t1.len() + arc.b1.len();
        let l2 = arc.t2.len() + arc.b2.len();
        if l1 == c {
            if arc.t1.len() < c {
                arc.b1.pop();
                replace(&mut arc);
            } else {
                arc.t1.pop();
            }
        } else if l1 + l2 >= c {
            if l1 + l2 == 2 * c {
                arc.b2.pop();
            }
            replace(&mut arc);
        }
        arc.t1.insert(0, x);
    }
    hits
}
