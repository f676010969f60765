//! What containers of GNU's C++ library do out of line: the links of lists, and how trees stay balanced.
//!
//! `std::list`, `std::map`, `std::set` and the like are templates, instrumented with the program, but for a few
//! functions of the library. If nobody saw what those write, a thread that finds an element would seem to find it
//! whatever other threads have done. So each is written here once more, and logs every access as one of the code that
//! called it. Nothing is logged for code that is not instrumented, such as the library itself.
//!
//! A node of a list has a link to the next and one to the previous; the list is a ring, closed by a node without an
//! element. A node of a tree has a colour and links to its parent and children. A *header* without an element holds
//! the root as its parent, the first node as its left child and the last as its right one.
//!
//! A hash table asks the library how many buckets it needs, and that notes in the table up to when these will do.
//!
//! Trees are balanced as Cormen, Leiserson and Rivest do it (Introduction to Algorithms, chapter 13).

#![allow(non_snake_case, reason = "programs know these functions by their names")]

use super::objects;
use crate::log;
use crate::thread;
use crate::wire::Kind;

/// The address of a node, or 0.
type Node = u64;

/// Who accesses nodes.
#[derive(Clone, Copy)]
struct Accessor {
    code: u64,
    is_logged: bool,
}

impl Accessor {
    /// The code that called the interceptor.
    unsafe fn caller() -> Self {
        let code = thread::caller();
        Self { code, is_logged: objects::is_instrumented(code) }
    }

    unsafe fn log(self, kind: Kind, size: u32, address: u64) {
        if self.is_logged {
            log::access::<false>(kind, size, address, self.code);
        }
    }

    /// The link of `node` at `offset`.
    unsafe fn get(self, node: Node, offset: u64) -> Node {
        self.log(Kind::Read, 3, node + offset);
        ((node + offset) as *const Node).read_volatile()
    }

    unsafe fn set(self, node: Node, offset: u64, to: Node) {
        self.log(Kind::Write, 3, node + offset);
        ((node + offset) as *mut Node).write_volatile(to);
    }

    unsafe fn colour(self, node: Node) -> u32 {
        self.log(Kind::Read, 2, node);
        (node as *const u32).read_volatile()
    }

    unsafe fn set_colour(self, node: Node, to: u32) {
        self.log(Kind::Write, 2, node);
        (node as *mut u32).write_volatile(to);
    }
}

// Lists.

const NEXT: u64 = 0;
const PREVIOUS: u64 = 8;

impl Accessor {
    /// `second` follows `first`.
    unsafe fn join(self, first: Node, second: Node) {
        self.set(first, NEXT, second);
        self.set(second, PREVIOUS, first);
    }

    unsafe fn hook(self, node: Node, position: Node) {
        let previous = self.get(position, PREVIOUS);
        self.join(previous, node);
        self.join(node, position);
    }

    unsafe fn unhook(self, node: Node) {
        let next = self.get(node, NEXT);
        self.join(self.get(node, PREVIOUS), next);
    }

    /// Moves what is from `first` up to `end` in front of `position`.
    unsafe fn transfer(self, position: Node, first: Node, end: Node) {
        if position == end {
            return;
        }
        let last = self.get(end, PREVIOUS);
        self.join(self.get(first, PREVIOUS), end);
        self.join(self.get(position, PREVIOUS), first);
        self.join(last, position);
    }

    unsafe fn reverse(self, header: Node) {
        let mut node = header;
        loop {
            let next = self.get(node, NEXT);
            let previous = self.get(node, PREVIOUS);
            self.set(node, NEXT, previous);
            self.set(node, PREVIOUS, next);
            node = next;
            if node == header {
                return;
            }
        }
    }

    unsafe fn swap(self, first: Node, second: Node) {
        let [of_first, of_second] = [self.ends(first), self.ends(second)];
        self.fill(first, of_second);
        self.fill(second, of_first);
    }

    /// The first and the last node of a list, if it has any.
    unsafe fn ends(self, header: Node) -> Option<[Node; 2]> {
        let next = self.get(header, NEXT);
        if next == header { None } else { Some([next, self.get(header, PREVIOUS)]) }
    }

    unsafe fn fill(self, header: Node, ends: Option<[Node; 2]>) {
        let [first, last] = ends.unwrap_or([header, header]);
        self.join(header, first);
        self.join(last, header);
    }
}

// Trees.

const PARENT: u64 = 8;
const LEFT: u64 = 16;
const RIGHT: u64 = 24;

const RED: u32 = 0;
const BLACK: u32 = 1;

const fn other(side: u64) -> u64 {
    LEFT + RIGHT - side
}

impl Accessor {
    unsafe fn is_black(self, node: Node) -> bool {
        node == 0 || self.colour(node) == BLACK
    }

    /// The last node that is reached from `node` by going to `side`.
    unsafe fn outermost(self, mut node: Node, side: u64) -> Node {
        loop {
            match self.get(node, side) {
                0 => return node,
                child => node = child,
            }
        }
    }

    /// On which side of `parent` the node is.
    unsafe fn side(self, node: Node, parent: Node) -> u64 {
        if node == self.get(parent, LEFT) { LEFT } else { RIGHT }
    }

    /// The node that follows `node` in the direction of `side`.
    unsafe fn neighbour(self, mut node: Node, side: u64) -> Node {
        let child = self.get(node, side);
        if child != 0 {
            return self.outermost(child, other(side));
        }
        let mut parent = self.get(node, PARENT);
        while node == self.get(parent, side) {
            node = parent;
            parent = self.get(parent, PARENT);
        }
        // A root without a child on that side: the way has led to the header and back.
        if side == RIGHT && self.get(node, RIGHT) == parent { node } else { parent }
    }

    unsafe fn decrement(self, node: Node) -> Node {
        // The header is red and its own grandparent.
        if self.colour(node) == RED {
            let parent = self.get(node, PARENT);
            if self.get(parent, PARENT) == node {
                return self.get(node, RIGHT);
            }
        }
        self.neighbour(node, LEFT)
    }

    /// Puts `new`, which may be none, where `old` is among the children of its parent.
    unsafe fn replace(self, old: Node, new: Node, header: Node) {
        if self.get(header, PARENT) == old {
            return self.set(header, PARENT, new);
        }
        let parent = self.get(old, PARENT);
        self.set(parent, self.side(old, parent), new);
    }

    /// Moves `node` down to `side`, and its other child up in its place.
    unsafe fn rotate(self, node: Node, side: u64, header: Node) {
        let child = self.get(node, other(side));
        let inner = self.get(child, side);
        self.set(node, other(side), inner);
        if inner != 0 {
            self.set(inner, PARENT, node);
        }
        self.replace(node, child, header);
        self.set(child, PARENT, self.get(node, PARENT));
        self.set(child, side, node);
        self.set(node, PARENT, child);
    }

    unsafe fn insert(self, side: u64, node: Node, parent: Node, header: Node) {
        self.set(node, PARENT, parent);
        self.set(node, LEFT, 0);
        self.set(node, RIGHT, 0);
        self.set_colour(node, RED);
        let is_outermost = parent == header || self.get(header, side) == parent;
        self.set(parent, side, node);
        if parent == header {
            self.set(header, PARENT, node);
            self.set(header, other(side), node);
        } else if is_outermost {
            self.set(header, side, node);
        }
        self.balance_inserted(node, header);
        let root = self.get(header, PARENT);
        self.set_colour(root, BLACK);
    }

    /// `node` is red, and its parent may be.
    unsafe fn balance_inserted(self, mut node: Node, header: Node) {
        while node != self.get(header, PARENT) {
            let parent = self.get(node, PARENT);
            if self.colour(parent) == BLACK {
                return;
            }
            let grandparent = self.get(parent, PARENT);
            let side = self.side(parent, grandparent);
            let uncle = self.get(grandparent, other(side));
            self.set_colour(grandparent, RED);
            if !self.is_black(uncle) {
                self.set_colour(parent, BLACK);
                self.set_colour(uncle, BLACK);
                node = grandparent;
                continue;
            }
            let is_inner = node == self.get(parent, other(side));
            if is_inner {
                self.rotate(parent, side, header);
            }
            self.set_colour(if is_inner { node } else { parent }, BLACK);
            return self.rotate(grandparent, other(side), header);
        }
    }

    /// Takes `node` out.
    unsafe fn erase(self, node: Node, header: Node) {
        let [left, right] = [self.get(node, LEFT), self.get(node, RIGHT)];
        // What is one black node short from then on, and its parent.
        let (short, parent, colour);
        if left == 0 || right == 0 {
            short = left | right;
            parent = self.get(node, PARENT);
            colour = self.colour(node);
            self.replace(node, short, header);
            if short != 0 {
                self.set(short, PARENT, parent);
            }
            for side in [LEFT, RIGHT] {
                if self.get(header, side) == node {
                    let is_leaf = short == 0;
                    let next = if is_leaf { parent } else { self.outermost(short, side) };
                    self.set(header, side, next);
                }
            }
        } else {
            // The next one takes its place and colour.
            let heir = self.outermost(right, LEFT);
            short = self.get(heir, RIGHT);
            colour = self.colour(heir);
            if heir == right {
                parent = heir;
            } else {
                parent = self.get(heir, PARENT);
                self.set(parent, LEFT, short);
                if short != 0 {
                    self.set(short, PARENT, parent);
                }
                self.set(heir, RIGHT, right);
                self.set(right, PARENT, heir);
            }
            self.set(heir, LEFT, left);
            self.set(left, PARENT, heir);
            self.replace(node, heir, header);
            self.set(heir, PARENT, self.get(node, PARENT));
            self.set_colour(heir, self.colour(node));
        }
        if colour == BLACK {
            self.balance_erased(short, parent, header);
        }
    }

    /// All ways through `node`, which may be none, have one black node less than those around it.
    unsafe fn balance_erased(self, mut node: Node, mut parent: Node, header: Node) {
        while node != self.get(header, PARENT) && self.is_black(node) {
            let side = self.side(node, parent);
            let mut sibling = self.get(parent, other(side));
            if !self.is_black(sibling) {
                self.set_colour(sibling, BLACK);
                self.set_colour(parent, RED);
                self.rotate(parent, side, header);
                sibling = self.get(parent, other(side));
            }
            let [near, far] = [side, other(side)].map(|child| self.get(sibling, child));
            if self.is_black(near) && self.is_black(far) {
                self.set_colour(sibling, RED);
                node = parent;
                parent = self.get(node, PARENT);
                continue;
            }
            let mut far = far;
            if self.is_black(far) {
                self.set_colour(near, BLACK);
                self.set_colour(sibling, RED);
                self.rotate(sibling, other(side), header);
                (far, sibling) = (sibling, near);
            }
            self.set_colour(sibling, self.colour(parent));
            self.set_colour(parent, BLACK);
            self.set_colour(far, BLACK);
            return self.rotate(parent, side, header);
        }
        if node != 0 {
            self.set_colour(node, BLACK);
        }
    }
}

super::interceptors! { complete
    fn _ZNSt8__detail15_List_node_base7_M_hookEPS0_(node: Node, position: Node) -> () {
        Accessor::caller().hook(node, position);
    }
    fn _ZNSt8__detail15_List_node_base9_M_unhookEv(node: Node) -> () {
        Accessor::caller().unhook(node);
    }
    fn _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_(
        position: Node, first: Node, end: Node,
    ) -> () {
        Accessor::caller().transfer(position, first, end);
    }
    fn _ZNSt8__detail15_List_node_base10_M_reverseEv(header: Node) -> () {
        Accessor::caller().reverse(header);
    }
    fn _ZNSt8__detail15_List_node_base4swapERS0_S1_(first: Node, second: Node) -> () {
        Accessor::caller().swap(first, second);
    }
    fn [_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base
        _ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base](node: Node) -> Node {
        Accessor::caller().neighbour(node, RIGHT)
    }
    fn [_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base
        _ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base](node: Node) -> Node {
        Accessor::caller().decrement(node)
    }
    fn _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_(
        is_left: bool, node: Node, parent: Node, header: Node,
    ) -> () {
        Accessor::caller().insert(if is_left { LEFT } else { RIGHT }, node, parent, header);
    }
    fn _ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_(
        node: Node, header: Node,
    ) -> Node {
        Accessor::caller().erase(node, header);
        node
    }
}

/// Up to how many elements a hash table keeps its buckets, which its policy of growing remembers. Static programs keep
/// the library's functions.
#[cfg(not(reweave_static))]
pub mod dynamic {
    use super::*;

    /// Where a policy has that number.
    const NEXT_RESIZE: u64 = 8;

    /// How many buckets there should be, if others than there are.
    #[repr(C)]
    pub struct Rehash {
        is_needed: u64,
        buckets: u64,
    }

    crate::interceptors::interceptors! {
        fn _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm(policy: u64, count: u64) -> u64 {
            Accessor::caller().log(Kind::Write, 3, policy + NEXT_RESIZE);
            real(policy, count)
        }
        fn _ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm(
            policy: u64, buckets: u64, elements: u64, added: u64,
        ) -> Rehash {
            let accessor = Accessor::caller();
            let elements_max = accessor.get(policy, NEXT_RESIZE);
            if elements.saturating_add(added) >= elements_max {
                accessor.log(Kind::Write, 3, policy + NEXT_RESIZE);
            }
            real(policy, buckets, elements, added)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const UNSEEN: Accessor = Accessor { code: 0, is_logged: false };

    /// Nodes and a header, as the library lays them out.
    struct Tree {
        nodes: Vec<[Cell<u64>; 4]>,
    }

    impl Tree {
        fn new(count: usize) -> Self {
            let tree = Self { nodes: vec![[const { Cell::new(0) }; 4]; count + 1] };
            let header = tree.node(0);
            let fields = [u64::from(RED), 0, header, header];
            tree.nodes[0].iter().zip(fields).for_each(|(field, value)| field.set(value));
            tree
        }

        fn node(&self, at: usize) -> Node {
            &raw const self.nodes[at] as u64
        }

        fn key(&self, node: Node) -> usize {
            (node - self.node(0)) as usize / 32
        }

        /// Keys are the places of nodes.
        fn insert(&self, key: usize) {
            // SAFETY: all links lead to nodes.
            unsafe {
                let header = self.node(0);
                let (mut parent, mut at) = (header, UNSEEN.get(header, PARENT));
                let mut side = LEFT;
                while at != 0 {
                    side = if key < self.key(at) { LEFT } else { RIGHT };
                    (parent, at) = (at, UNSEEN.get(at, side));
                }
                UNSEEN.insert(side, self.node(key), parent, header);
            }
        }

        fn erase(&self, key: usize) {
            // SAFETY: as above.
            unsafe { UNSEEN.erase(self.node(key), self.node(0)) };
        }

        /// How many black nodes each way has, if the tree is as it should be below `node`.
        unsafe fn black_height(&self, node: Node, parent: Node) -> usize {
            if node == 0 {
                return 1;
            }
            assert_eq!(UNSEEN.get(node, PARENT), parent);
            let children = [LEFT, RIGHT].map(|side| UNSEEN.get(node, side));
            let is_red = !UNSEEN.is_black(node);
            assert!(!is_red || children.iter().all(|&child| UNSEEN.is_black(child)));
            let [left, right] = children.map(|child| self.black_height(child, node));
            assert_eq!(left, right);
            left + usize::from(!is_red)
        }

        fn check(&self, keys: &[usize]) {
            // SAFETY: as above.
            unsafe {
                let header = self.node(0);
                let root = UNSEEN.get(header, PARENT);
                assert!(UNSEEN.is_black(root));
                assert_eq!(UNSEEN.colour(header), RED);
                self.black_height(root, header);
                let mut node = UNSEEN.get(header, LEFT);
                for &key in keys {
                    assert_eq!(self.key(node), key);
                    node = UNSEEN.neighbour(node, RIGHT);
                }
                assert_eq!(node, header);
                for &key in keys.iter().rev() {
                    node = UNSEEN.decrement(node);
                    assert_eq!(self.key(node), key);
                }
                assert_eq!(node, UNSEEN.get(header, LEFT));
            }
        }
    }

    #[test]
    fn trees_stay_ordered_and_balanced() {
        let mut runner = proptest::test_runner::TestRunner::default();
        let keys = proptest::collection::vec(1_usize..40, 0..200);
        runner
            .run(&keys, |keys| {
                let tree = Tree::new(40);
                let mut present = std::collections::BTreeSet::new();
                for key in keys {
                    if present.insert(key) {
                        tree.insert(key);
                    } else {
                        present.remove(&key);
                        tree.erase(key);
                    }
                    tree.check(&present.iter().copied().collect::<Vec<_>>());
                }
                Ok(())
            })
            .unwrap();
    }

    /// Two headers, and nodes.
    struct Lists {
        nodes: Vec<[Cell<u64>; 2]>,
    }

    impl Lists {
        fn new(first: usize, second: usize) -> Self {
            let lists = Self { nodes: vec![[const { Cell::new(0) }; 2]; first + second + 2] };
            // SAFETY: all links lead to nodes.
            unsafe {
                for header in [0, 1] {
                    UNSEEN.fill(lists.node(header), None);
                }
                for node in 2..first + 2 {
                    UNSEEN.hook(lists.node(node), lists.node(0));
                }
                for node in first + 2..lists.nodes.len() {
                    UNSEEN.hook(lists.node(node), lists.node(1));
                }
            }
            lists
        }

        fn node(&self, at: usize) -> Node {
            &raw const self.nodes[at] as u64
        }

        /// The nodes of a list, forwards, after a look backwards.
        fn of(&self, header: usize) -> Vec<usize> {
            let walk = |link| {
                let mut found = Vec::new();
                // SAFETY: all links lead to nodes.
                let mut node = unsafe { UNSEEN.get(self.node(header), link) };
                while node != self.node(header) {
                    found.push((node - self.node(0)) as usize / 16);
                    // SAFETY: as above.
                    node = unsafe { UNSEEN.get(node, link) };
                }
                found
            };
            let mut backwards = walk(PREVIOUS);
            backwards.reverse();
            assert_eq!(walk(NEXT), backwards);
            backwards
        }
    }

    #[test]
    fn lists_are_linked_both_ways() {
        let lists = Lists::new(3, 2);
        assert_eq!([lists.of(0), lists.of(1)], [vec![2, 3, 4], vec![5, 6]]);
        // SAFETY: all links lead to nodes.
        unsafe {
            UNSEEN.unhook(lists.node(3));
            assert_eq!(lists.of(0), [2, 4]);
            UNSEEN.transfer(lists.node(4), lists.node(5), lists.node(1));
            assert_eq!([lists.of(0), lists.of(1)], [vec![2, 5, 6, 4], vec![]]);
            UNSEEN.transfer(lists.node(2), lists.node(6), lists.node(0));
            assert_eq!(lists.of(0), [6, 4, 2, 5]);
            UNSEEN.reverse(lists.node(0));
            assert_eq!(lists.of(0), [5, 2, 4, 6]);
        }
        for (first, second) in [(0, 0), (0, 2), (1, 0), (2, 1)] {
            let lists = Lists::new(first, second);
            let before = [lists.of(0), lists.of(1)];
            // SAFETY: as above.
            unsafe { UNSEEN.swap(lists.node(0), lists.node(1)) };
            assert_eq!([lists.of(1), lists.of(0)], before);
        }
    }
}
