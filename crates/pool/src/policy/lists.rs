//! Doubly linked lists over small numbers, with which every policy orders its frames.
//!
//! ```text
//!   nodes   | sentinel of list 0 | ... | sentinel of list L-1 | item 0 | item 1 | ...
//!             prev, next, list              a ring each          "out" or on one ring
//! ```
//!
//! An item is on at most one list, so a single array holds the links of all lists, and an
//! additional list costs only its sentinel. Links take four bytes. Only growth allocates memory,
//! and no operation searches.

use crate::page::PageId;

/// The list number of a node that is on no list.
const OUT: u32 = u32::MAX;

/// The value that a list stores for each item.
pub(super) trait Value: Copy {
    /// The value of an item that was never on a list.
    const NONE: Self;
}

impl Value for () {
    const NONE: Self = ();
}

impl Value for PageId {
    const NONE: Self = PageId::NONE;
}

#[derive(Debug, Clone, Copy)]
struct Node<T> {
    prev: u32,
    next: u32,
    list: u32,
    value: T,
}

/// `L` lists over items `0..`, each with a value. The newest item is usually at the front.
#[derive(Debug, Clone)]
pub(super) struct Lists<T, const L: usize> {
    nodes: Vec<Node<T>>,
    lens: [usize; L],
}

impl<T: Value, const L: usize> Lists<T, L> {
    /// Creates empty lists with space for items `0..items`. They grow for higher items.
    pub(super) fn new(items: usize) -> Self {
        let mut nodes = Vec::with_capacity(L + items);
        for list in 0..L as u32 {
            nodes.push(Node { prev: list, next: list, list, value: T::NONE });
        }
        let mut lists = Lists { nodes, lens: [0; L] };
        lists.resize(items);
        lists
    }

    /// Sets the space to items `0..items`. Higher items that are on a list keep their place and
    /// their space.
    pub(super) fn resize(&mut self, items: usize) {
        debug_assert!(self.assert_consistent());
        let used = self.nodes.iter().rposition(|node| node.list != OUT).map_or(0, |last| last + 1);
        self.nodes.resize((L + items).max(used), Self::out());
        self.nodes.shrink_to_fit();
        debug_assert!(self.assert_consistent());
    }

    /// Checks all links and lengths, in time linear in the items. Always true, for `debug_assert!`.
    pub(super) fn assert_consistent(&self) -> bool {
        for list in 0..L {
            let (mut at, mut len) = (list, 0);
            loop {
                let Node { next, list: here, .. } = self.nodes[at];
                assert!(here as usize == list, "node {at} of list {list} is on list {here}");
                assert!(
                    self.nodes[next as usize].prev as usize == at,
                    "node {next} does not lead back to {at}"
                );
                at = next as usize;
                if at == list {
                    break;
                }
                len += 1;
                assert!(len <= self.nodes.len(), "list {list} has no end");
            }
            assert!(len == self.lens[list], "list {list} has {len} items, counted {}", self.lens[list]);
        }
        let on_lists = self.nodes.iter().skip(L).filter(|node| node.list != OUT).count();
        assert!(on_lists == self.total(), "{on_lists} items are on lists, counted {}", self.total());
        true
    }

    /// Returns the number of items on a list.
    pub(super) fn len(&self, list: usize) -> usize {
        self.lens[list]
    }

    /// Returns the number of items on all lists.
    pub(super) fn total(&self) -> usize {
        self.lens.iter().sum()
    }

    /// Returns the list that an item is on.
    #[inline]
    pub(super) fn list_of(&self, item: u32) -> Option<usize> {
        match self.nodes.get(item as usize + L) {
            Some(node) if node.list != OUT => Some(node.list as usize),
            _ => None,
        }
    }

    /// Returns the value that an item was last given, or [`Value::NONE`] for one that was never on
    /// a list.
    #[inline]
    pub(super) fn value(&self, item: u32) -> T {
        self.nodes.get(item as usize + L).map_or(T::NONE, |node| node.value)
    }

    /// Sets the value of an item, whether it is on a list or not.
    #[inline]
    pub(super) fn set_value(&mut self, item: u32, value: T) {
        if let Some(node) = self.nodes.get_mut(item as usize + L) {
            node.value = value;
        }
    }

    /// Iterates over the items of a list from the front.
    pub(super) fn iter(&self, list: usize) -> impl Iterator<Item = u32> {
        std::iter::successors(self.front(list), |&item| self.after(item))
    }

    /// Returns the next item towards the back; `None` for the last one and for an item on no list.
    #[inline]
    pub(super) fn after(&self, item: u32) -> Option<u32> {
        self.nodes.get(item as usize + L).and_then(|node| self.item(node.next))
    }

    /// Returns the first item of a list.
    #[inline]
    pub(super) fn front(&self, list: usize) -> Option<u32> {
        self.item(self.nodes[list].next)
    }

    /// Returns the last item of a list.
    #[inline]
    pub(super) fn back(&self, list: usize) -> Option<u32> {
        self.item(self.nodes[list].prev)
    }

    /// Returns the next item towards the front; `None` for the first one and for an item on no
    /// list.
    #[inline]
    pub(super) fn before(&self, item: u32) -> Option<u32> {
        self.nodes.get(item as usize + L).and_then(|node| self.item(node.prev))
    }

    /// Puts an item at the front of a list, removing it from its current list if any.
    #[inline]
    pub(super) fn push_front(&mut self, list: usize, item: u32, value: T) {
        let node = self.free_node(item, value);
        let next = self.nodes[list].next;
        self.link(list, node, list as u32, next);
    }

    /// Puts an item right after item `at`, on the same list. Does nothing when `at` is on no list.
    #[inline]
    pub(super) fn push_behind(&mut self, at: u32, item: u32, value: T) {
        debug_assert!(at != item, "item {item} cannot come after itself");
        let Some(list) = self.list_of(at) else { return };
        let node = self.free_node(item, value);
        let at = at + L as u32;
        let next = self.nodes[at as usize].next;
        self.link(list, node, at, next);
    }

    /// Moves an item to the front of a list, which may differ from its current one.
    #[inline]
    pub(super) fn move_to_front(&mut self, list: usize, item: u32) {
        let value = self.value(item);
        self.push_front(list, item, value);
    }

    /// Removes an item from its list and returns the list.
    #[inline]
    pub(super) fn remove(&mut self, item: u32) -> Option<usize> {
        let list = self.list_of(item)?;
        self.unlink(item as usize + L, list);
        Some(list)
    }

    /// Removes and returns the last item of a list.
    pub(super) fn pop_back(&mut self, list: usize) -> Option<u32> {
        let item = self.back(list)?;
        debug_assert!(self.list_of(item) == Some(list), "item {item} is not on list {list}");
        self.unlink(item as usize + L, list);
        Some(item)
    }

    fn out() -> Node<T> {
        Node { prev: OUT, next: OUT, list: OUT, value: T::NONE }
    }

    #[inline]
    fn item(&self, node: u32) -> Option<u32> {
        node.checked_sub(L as u32).filter(|_| node != OUT)
    }

    /// Returns the node of an item, removed from any list, ready to be linked.
    #[inline]
    fn free_node(&mut self, item: u32, value: T) -> u32 {
        let node = item as usize + L;
        if node >= self.nodes.len() {
            self.nodes.resize(node + 1, Self::out());
        } else if self.nodes[node].list != OUT {
            self.unlink(node, self.nodes[node].list as usize);
        }
        debug_assert!(self.nodes[node].list == OUT && node < OUT as usize);
        self.nodes[node].value = value;
        node as u32
    }

    #[inline]
    fn link(&mut self, list: usize, node: u32, prev: u32, next: u32) {
        debug_assert!(self.nodes[node as usize].list == OUT, "node {node} is on a list already");
        debug_assert!(self.nodes[prev as usize].next == next && self.nodes[next as usize].prev == prev);
        debug_assert!(self.nodes[prev as usize].list as usize == list, "node {prev} is not on list {list}");
        let linked = &mut self.nodes[node as usize];
        (linked.prev, linked.next, linked.list) = (prev, next, list as u32);
        self.nodes[prev as usize].next = node;
        self.nodes[next as usize].prev = node;
        self.lens[list] += 1;
    }

    #[inline]
    fn unlink(&mut self, node: usize, list: usize) {
        let Node { prev, next, .. } = self.nodes[node];
        debug_assert!(
            node >= L && self.nodes[node].list as usize == list,
            "node {node} is not on list {list}"
        );
        debug_assert!(self.nodes[prev as usize].next as usize == node, "node {prev} does not lead to {node}");
        debug_assert!(self.nodes[next as usize].prev as usize == node, "node {next} does not lead to {node}");
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        let unlinked = &mut self.nodes[node];
        (unlinked.prev, unlinked.next, unlinked.list) = (OUT, OUT, OUT);
        self.lens[list] -= 1;
    }
}
