//! Orders with few switches between owners.
//!
//! A schedule jumps between threads for no reason. Steps that do not depend on each other can be exchanged, so each
//! thread can go on for as long as it depends on nothing that another has still to do. The fewest switches are hard
//! to find; of two ways to choose who goes on, the better one is taken: who has the step that came first, or
//! who can run furthest.
//!
//! Costs the steps and dependences, and at each switch a look at each owner and the steps it could run.

/// How to choose the owner that goes on when the last one cannot.
#[derive(Clone, Copy)]
enum Choice {
    First,
    Furthest,
}

/// An order of `owners.len()` steps with few switches between their owners. They are given in an order that is
/// possible, each with the earlier steps that it depends on besides those of its own owner.
#[must_use]
pub fn with_few_switches(owners: &[usize], before: &[Vec<usize>]) -> Vec<usize> {
    let given = (0..owners.len()).collect();
    let chosen = [Choice::First, Choice::Furthest].map(|choice| {
        let mut steps = Steps::new(owners, before);
        steps.run(choice);
        steps.order
    });
    let all = chosen.into_iter().chain([given]);
    all.min_by_key(|order| count_switches(owners, order)).unwrap_or_default()
}

/// How often the owner changes along `order`.
#[must_use]
pub fn count_switches(owners: &[usize], order: &[usize]) -> usize {
    order.windows(2).filter(|pair| owners[pair[0]] != owners[pair[1]]).count()
}

struct Steps<'a> {
    owners: &'a [usize],
    before: &'a [Vec<usize>],
    /// The steps of each owner, and how many of them are done.
    queues: Vec<(Vec<usize>, usize)>,
    is_done: Vec<bool>,
    order: Vec<usize>,
}

impl<'a> Steps<'a> {
    fn new(owners: &'a [usize], before: &'a [Vec<usize>]) -> Self {
        let owners_count = owners.iter().max().map_or(0, |last| last + 1);
        let mut queues = vec![(Vec::new(), 0); owners_count];
        for (step, &owner) in owners.iter().enumerate() {
            queues[owner].0.push(step);
        }
        Self { owners, before, queues, is_done: vec![false; owners.len()], order: Vec::new() }
    }

    fn run(&mut self, choice: Choice) {
        while let Some(owner) = self.choose(choice) {
            // The first step that is left depends on nothing that is, so somebody always can go on.
            let count = self.reach(owner);
            let (queue, done) = &mut self.queues[owner];
            for &step in &queue[*done..*done + count] {
                self.is_done[step] = true;
                self.order.push(step);
            }
            *done += count;
        }
    }

    fn choose(&self, choice: Choice) -> Option<usize> {
        let left = self.queues.iter().enumerate();
        let left = left.filter_map(|(owner, (queue, done))| Some((*queue.get(*done)?, owner)));
        match choice {
            Choice::First => left.min().map(|(_, owner)| owner),
            Choice::Furthest => {
                let reach =
                    |&(step, owner): &(usize, usize)| (self.reach(owner), std::cmp::Reverse(step));
                left.max_by_key(reach).map(|(_, owner)| owner)
            }
        }
    }

    /// How many steps `owner` can do now, one after the other.
    fn reach(&self, owner: usize) -> usize {
        let (queue, done) = &self.queues[owner];
        let is_met = |&earlier: &usize| self.is_done[earlier] || self.owners[earlier] == owner;
        queue[*done..].iter().take_while(|&&step| self.before[step].iter().all(is_met)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_go_on_for_as_long_as_they_can() {
        // Two threads take turns, and the last step of the first needs the second step of the other.
        let (owners, mut before) = ([0, 1, 0, 1, 0, 1], vec![Vec::new(); 6]);
        before[4].push(3);
        let order = with_few_switches(&owners, &before);
        assert_eq!(order, [1, 3, 5, 0, 2, 4]);
        assert_eq!(count_switches(&owners, &order), 1);
        assert!(with_few_switches(&[], &[]).is_empty());
    }

    #[test]
    fn no_step_comes_before_what_it_depends_on_and_no_owner_changes_its_order() {
        let mut rng = crate::Rng::new(1);
        for _ in 0..200 {
            let owners: Vec<usize> = (0..20).map(|_| rng.below(4)).collect();
            let before: Vec<Vec<usize>> =
                (0..20).map(|step| (0..step).filter(|_| rng.below(12) == 0).collect()).collect();
            let order = with_few_switches(&owners, &before);
            let mut place = vec![0; order.len()];
            order.iter().enumerate().for_each(|(at, &step)| place[step] = at);
            for step in 0..owners.len() {
                assert!(before[step].iter().all(|&earlier| place[earlier] < place[step]));
                let mut own = (0..step).filter(|&earlier| owners[earlier] == owners[step]);
                assert!(own.all(|earlier| place[earlier] < place[step]));
            }
            let given: Vec<usize> = (0..owners.len()).collect();
            assert!(count_switches(&owners, &order) <= count_switches(&owners, &given));
        }
    }
}
