//! Inference: the fewest `if (*)` with which all runs are serializable, or why there are none.
//!
//! A run whose conflicts have no cycle at all needs nothing (Theorem 1 of Burnim et al.). A run
//! whose conflicts inside the forced set have a cycle proves that there is no specification (see
//! [`forced`]). A run whose conflicts are gone when irrelevant events are left out
//! needs nothing either. Only the rest reaches the solver.
//!
//! Of the specifications with the fewest `if (*)` the answer is the best in this order, so that
//! it depends on the runs alone and not on the solver:
//! 1. the fewest placements, the objective of the paper;
//! 2. the fewest *exempt* statements: those with an event that has to be irrelevant for the cycles to
//!    go and that no skipped `if (*)` encloses. With none, the cycles go by what is enclosed alone,
//!    as section 2.3 of the paper asks. What is irrelevant without any placement does not count.
//!    Counting statements, not events, keeps the number small and independent of a run's length;
//! 3. the fewest statements enclosed;
//! 4. the earliest in the source.
//!
//! How much is known beforehand ([`Known`]) changes no answer, and mostly makes the encoding smaller,
//! but not always: it decides which of several cycles of one kind are found first and written
//! down, and what has to be encoded around one may be more than around another that says the same.
//! Knowing more saves candidates; variables only as far as the same cycles are met.
//!
//! What is found is *likely* a specification: it explains the given runs, and fewest `if (*)` is a
//! heuristic against allowing too much. A placement that turns out wrong can be rejected, with all
//! that contain it, and the search goes on from where it was (constraint (8), appendix C).

use reweave_base::IndexVec;
use reweave_trace::Trace;

use crate::check::{Explanation, Reason, explain};
use crate::conflict::Conflicts;
use crate::events::NodeId;
use crate::placement::{Placement, own_placements};
use crate::relevant::{Regions, relevant};
use crate::relevant::{forced, slice};
use crate::run::{Run, RunError, prepare};
use crate::search::{Found, Search};

/// How to infer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sets of placements that are known to be wrong, each with every set that contains it.
    pub rejected: Vec<Vec<Placement>>,
    /// What is known to be kept before the solver is asked. The answer is the same for all.
    pub known: Known,
    /// Whether events of a statement that is not needed share a variable. Smaller, but the answer
    /// may have more placements than are needed.
    pub grouping: bool,
    /// Whether the second criterion counts; without it, of two specifications with as many
    /// placements the one that encloses less is chosen.
    pub cover: bool,
    /// How many conflicts the solver may meet before the search is given up.
    pub conflicts_max: u64,
    /// How many models may be looked at before the search is given up.
    pub rounds_max: u64,
    /// How many steps the encoding may take before the search is given up: one for a literal that
    /// says what a placement encloses, a hundred for a variable that this needs. It bounds time and
    /// memory where blocks are long: the default does for an execution of a block of 600 statements
    /// with branches everywhere, or for a thousand of blocks of 30.
    pub encoding_max: u64,
}

/// Which events are known to be kept before the solver is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// The targets: constraint (A) of the paper.
    Targets,
    /// The dynamic slice: constraint (A') of the paper.
    Slice,
    /// The forced set: all that can be known.
    #[default]
    Forced,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rejected: Vec::new(),
            known: Known::default(),
            grouping: false,
            cover: true,
            conflicts_max: 10_000_000,
            rounds_max: 100_000,
            encoding_max: 100_000_000,
        }
    }
}

/// What was inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The program is its own specification.
    Unneeded(Unneeded),
    /// With these placements, sorted by their place in the source, every run is serializable. With
    /// fewer that are not rejected it would not be, unless [`Settings::grouping`] was asked for:
    /// then fewer might do.
    Specification(Vec<Placement>),
    /// No placements make the run serializable.
    Impossible(Explanation),
    /// There are placements, but all of them are rejected.
    NoneLeft,
    /// The budget ran out.
    Exhausted {
        /// So many placements are needed at least; with [`Settings::grouping`], by the clauses,
        /// which may ask for more than is needed.
        lower_bound: u64,
        /// A specification with as few placements as can be, if one was found; another with as
        /// many might be better.
        found: Option<Vec<Placement>>,
    },
}

/// Why a program needs no `if (*)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unneeded {
    /// The conflicts of every run have no cycle.
    Serializable,
    /// Every cycle has an event on which no result and no branch depends.
    IrrelevantConflicts,
    /// Every cycle has an event that the program's own `if (*)` make irrelevant.
    OwnPlacements,
}

/// What was inferred, and what it took.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The answer.
    pub answer: Answer,
    /// What it took.
    pub statistics: Statistics,
}

/// What an inference took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Of each run.
    pub runs: Vec<RunStatistics>,
    /// Placements thought of.
    pub candidates: usize,
    /// Variables of the solver.
    pub variables: u32,
    /// Clauses of the solver, those of cycles included.
    pub clauses: u64,
    /// Clauses of cycles.
    pub cycles: u64,
    /// Models that were looked at.
    pub rounds: u64,
    /// Refutations that raised a lower bound.
    pub cores: u64,
}

/// What is known of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStatistics {
    /// Events that count.
    pub events: usize,
    /// Those of them outside the dynamic slice.
    pub sliced_out: usize,
    /// Events that are kept whatever is enclosed.
    pub forced: usize,
    /// Whether all its conflicts together have no cycle.
    pub is_serializable: bool,
}

/// Infers a specification of the program of which `traces` are runs.
///
/// # Errors
/// If a trace has no flow layer, or the traces are of different programs.
pub fn infer(traces: &[&Trace], settings: &Settings) -> Result<Inference, RunError> {
    Ok(Inferrer::new(traces, settings)?.infer())
}

/// An inference that can go on after its answer was rejected.
#[derive(Debug)]
pub struct Inferrer<'t> {
    state: State<'t>,
    own: Vec<Placement>,
    statistics: Statistics,
}

#[derive(Debug)]
enum State<'t> {
    Answered(Answer),
    Searching(Box<Search<'t>>),
}

impl<'t> Inferrer<'t> {
    /// Makes an inference ready.
    ///
    /// # Errors
    /// If a trace has no flow layer, or the traces are of different programs.
    pub fn new(traces: &[&'t Trace], settings: &Settings) -> Result<Self, RunError> {
        let mut runs = Vec::new();
        let mut statistics = Statistics::default();
        for (index, run) in prepare(traces)?.into_iter().enumerate() {
            let looked_at = Looked::at(index, run);
            statistics.runs.push(looked_at.statistics);
            runs.push(looked_at);
        }
        let own = runs.first().map_or(Vec::new(), |looked| own_placements(looked.run.flow));
        let state = start(runs, &own, settings);
        if let State::Searching(search) = &state {
            search.count(&mut statistics);
        }
        Ok(Self { state, own, statistics })
    }

    /// The best specification that is not rejected.
    pub fn infer(&mut self) -> Inference {
        let answer = match &mut self.state {
            State::Answered(answer) => answer.clone(),
            State::Searching(search) => {
                let found = search.run();
                search.count(&mut self.statistics);
                match found {
                    Found::Best(placements) => Answer::Specification(placements),
                    Found::None => search.impossible().map_or(Answer::NoneLeft, Answer::Impossible),
                    Found::Exhausted { lower_bound, found } => {
                        Answer::Exhausted { lower_bound, found }
                    }
                }
            }
        };
        Inference { answer, statistics: self.statistics.clone() }
    }

    /// Says that `placements` are wrong, and so is every set that contains them.
    pub fn reject(&mut self, placements: &[Placement]) {
        match &mut self.state {
            State::Searching(search) => search.reject(placements),
            State::Answered(answer) => {
                if is_within(placements, &self.own) && matches!(answer, Answer::Unneeded(_)) {
                    *answer = Answer::NoneLeft;
                }
            }
        }
    }
}

/// A run and what can be said of it without the solver.
struct Looked<'t> {
    run: Run<'t>,
    is_kept: IndexVec<NodeId, bool>,
    proof: Option<Explanation>,
    statistics: RunStatistics,
}

impl<'t> Looked<'t> {
    fn at(index: usize, run: Run<'t>) -> Self {
        let every = IndexVec::from_elem(true, run.dependences.nodes_count());
        let is_serializable = Conflicts::new(&run, &every).is_serializable();
        let kept = forced(&run);
        let proof = if is_serializable {
            None
        } else {
            let conflicts = Conflicts::new(&run, &kept.is_member);
            explain(index, &run, &kept, &conflicts, Reason::Encloses)
        };
        let count = |is_member: &IndexVec<NodeId, bool>| {
            run.events.nodes().filter(|&node| is_member[node]).count()
        };
        let statistics = RunStatistics {
            events: run.events.len(),
            sliced_out: run.events.len() - count(&slice(&run)),
            forced: count(&kept.is_member),
            is_serializable,
        };
        Self { run, is_kept: kept.is_member, proof, statistics }
    }

    /// The events that are known to be kept, as the settings ask.
    fn known(&self, known: Known) -> IndexVec<NodeId, bool> {
        match known {
            Known::Forced => self.is_kept.clone(),
            Known::Slice => slice(&self.run),
            Known::Targets => {
                let mut is_kept = IndexVec::from_elem(false, self.is_kept.len());
                for &target in &self.run.targets {
                    is_kept[target] = true;
                }
                is_kept
            }
        }
    }
}

/// Whether `run` is serializable with `placements`.
pub(crate) fn is_safe(run: &Run<'_>, placements: &[Placement]) -> bool {
    let regions = Regions::new(run, placements, |node| run.events.is_branch(node));
    Conflicts::new(run, &relevant(run, &regions).is_member).is_serializable()
}

/// Whether `set` is there anyway: then every specification contains it.
fn is_within(set: &[Placement], own: &[Placement]) -> bool {
    set.iter().all(|placement| own.contains(placement))
}

/// Answers if the solver is not needed, and else makes the search ready.
fn start<'t>(runs: Vec<Looked<'t>>, own: &[Placement], settings: &Settings) -> State<'t> {
    let proof = runs.iter().find_map(|looked| looked.proof.clone());
    if let Some(proof) = proof.clone().filter(|_| settings.known == Known::Forced) {
        return State::Answered(Answer::Impossible(proof));
    }
    let rejects_own = settings.rejected.iter().any(|set| is_within(set, own));
    let open: Vec<Looked<'t>> =
        runs.into_iter().filter(|looked| !looked.statistics.is_serializable).collect();
    let unneeded = if open.is_empty() {
        Some(Unneeded::Serializable)
    } else if open.iter().all(|looked| is_safe(&looked.run, &[])) {
        Some(Unneeded::IrrelevantConflicts)
    } else if open.iter().all(|looked| is_safe(&looked.run, own)) {
        Some(Unneeded::OwnPlacements)
    } else {
        None
    };
    if let Some(unneeded) = unneeded {
        let answer = if rejects_own { Answer::NoneLeft } else { Answer::Unneeded(unneeded) };
        return State::Answered(answer);
    }
    // Enclosing more makes nothing relevant, so a run that is safe already stays so.
    let open: Vec<Looked<'t>> =
        open.into_iter().filter(|looked| !is_safe(&looked.run, own)).collect();
    let known = open.iter().map(|looked| looked.known(settings.known)).collect();
    let runs = open.into_iter().map(|looked| looked.run).collect();
    let mut search = Search::new(runs, known, own.to_vec(), proof, settings);
    for rejected in &settings.rejected {
        search.reject(rejected);
    }
    State::Searching(Box::new(search))
}
