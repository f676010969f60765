//! Consistent cuts of a poset of chains, by definition: every cut, and whether it is consistent.

/// A poset of chains: for each chain the vector clock of each of its events, in order. The clock of
/// an event says how many events of each chain come before it, itself included.
pub type Clocks = [Vec<Vec<u32>>];

/// The consistent cuts between `least` and `greatest`, in lexical order.
#[must_use]
pub fn between(clocks: &Clocks, least: &[u32], greatest: &[u32]) -> Vec<Vec<u32>> {
    let mut cuts = Vec::new();
    let mut cut = least.to_vec();
    loop {
        if is_consistent(clocks, &cut) {
            cuts.push(cut.clone());
        }
        // The next cut, as a number whose last digit counts fastest.
        let Some(place) = (0..cut.len()).rev().find(|&at| cut[at] < greatest[at]) else {
            return cuts;
        };
        cut[place] += 1;
        cut[place + 1..].copy_from_slice(&least[place + 1..]);
    }
}

/// Whether `cut` has, with the last event of each chain, all that comes before it.
fn is_consistent(clocks: &Clocks, cut: &[u32]) -> bool {
    clocks.iter().zip(cut).all(|(chain, &count)| {
        let last = count.checked_sub(1).map(|at| &chain[at as usize]);
        last.is_none_or(|clock| clock.iter().zip(cut).all(|(needed, has)| needed <= has))
    })
}

/// The consistent cut with the fewest events that is met, the first in lexical order of those.
#[must_use]
pub fn least(clocks: &Clocks, is_met: impl Fn(&[u32]) -> bool) -> Option<Vec<u32>> {
    let top: Vec<u32> = clocks.iter().map(|chain| chain.len() as u32).collect();
    let met = between(clocks, &vec![0; top.len()], &top).into_iter().filter(|cut| is_met(cut));
    met.min_by_key(|cut| (cut.iter().map(|&index| u64::from(index)).sum::<u64>(), cut.clone()))
}
