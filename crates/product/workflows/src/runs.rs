//! Several runs of one program, by a seed.

use reweave_exec::scheduler::{Candidates, Pct, RaceDirected, Random, RoundRobin, Scheduler, View};
use reweave_exec::{Code, Layers, Run, Settings, ThreadNumber, run};

/// A way to choose who goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedulerKind {
    /// Any thread, at every step.
    #[default]
    Random,
    /// By priorities that change a bounded number of times.
    Pct {
        /// How many ordering constraints the faults that are looked for need.
        depth: u32,
    },
    /// In turn.
    RoundRobin,
    /// Any thread, but held back where accesses of a first run conflicted.
    RaceDirected,
}

/// What to run, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Who goes on.
    pub scheduler: SchedulerKind,
    /// The seed of the first run; the next has the next.
    pub seed: u64,
    /// How many runs.
    pub runs_count: u32,
    /// What each may take, and what is recorded.
    pub settings: Settings,
}

/// Runs `code` as `plan` says and hands each run to `visit`, with its seed, until that returns
/// false. A run ends early once `goes_on` returns false.
pub fn repeat(
    code: &Code,
    plan: &Plan,
    goes_on: &dyn Fn() -> bool,
    mut visit: impl FnMut(u64, Run) -> bool,
) {
    let probe = match plan.scheduler {
        SchedulerKind::Pct { .. } | SchedulerKind::RaceDirected => Some(probe(code, plan, goes_on)),
        SchedulerKind::Random | SchedulerKind::RoundRobin => None,
    };
    let candidates = match (plan.scheduler, &probe) {
        (SchedulerKind::RaceDirected, Some(probe)) => Candidates::new(&probe.trace),
        _ => Candidates::default(),
    };
    let steps_count = probe.map_or(0, |probe| probe.schedule.0.len() as u64);
    for number in 0..u64::from(plan.runs_count) {
        let seed = plan.seed.wrapping_add(number);
        let mut scheduler: Box<dyn Scheduler> = match plan.scheduler {
            SchedulerKind::Random => Box::new(Random::new(seed)),
            SchedulerKind::Pct { depth } => Box::new(Pct::new(seed, depth, steps_count)),
            SchedulerKind::RoundRobin => Box::new(RoundRobin::new()),
            SchedulerKind::RaceDirected => Box::new(RaceDirected::new(seed, candidates.clone())),
        };
        let mut watched = Watched { scheduler: scheduler.as_mut(), goes_on };
        let made = run(code, &mut watched, &plan.settings);
        if !visit(seed, made) {
            return;
        }
    }
}

/// A first run, to learn how long runs are and where threads meet.
fn probe(code: &Code, plan: &Plan, goes_on: &dyn Fn() -> bool) -> Run {
    let settings = Settings { layers: Layers::Events, ..plan.settings };
    let mut random = Random::new(plan.seed);
    run(code, &mut Watched { scheduler: &mut random, goes_on }, &settings)
}

/// A scheduler that stops when `goes_on` says so.
struct Watched<'a> {
    scheduler: &'a mut dyn Scheduler,
    goes_on: &'a dyn Fn() -> bool,
}

impl Scheduler for Watched<'_> {
    fn pick(&mut self, ready: &[ThreadNumber], view: View<'_>) -> Option<usize> {
        // Looking costs more than a step.
        if view.steps_count().is_multiple_of(1 << 14) && !(self.goes_on)() {
            return None;
        }
        self.scheduler.pick(ready, view)
    }
}
