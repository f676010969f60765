//! The analyses of atomicity: blocks that the observed run, or another, does not run at once.
//!
//! What the accesses of the run as observed show comes first, each set of code locations once, with
//! how many blocks show it; the evidence is the run itself up to there. Then what other runs can
//! show, at other sets of code locations, each proven by a schedule; the count is that of the
//! patterns that nothing simple rules out, of which one is proven. Patterns on two variables are
//! looked for in blocks of which nothing is told yet. Last come blocks of which still nothing is
//! told, each once, and which the observed run breaks by other events than accesses: most often
//! another thread took a lock that the block gave up on its way.
//!
//! Every set of locations is tried once before any is tried again, so that a budget lasts for as many
//! as it can; where it does not last, or where not all patterns of a set that is not proven were
//! tried, the coverage says so.
//!
//! The budget pays for tries. What the observed run shows is looked for in any case.

mod message;
mod report;

use std::ops::ControlFlow;

use reweave_analysis::{
    Analysis, Coverage, Guarantee, Info, Kind, Layer, Settings, Sink, Subject, Truncation,
};
use reweave_trace::Trace;

use crate::blocks::{self, Blocks};
use report::Report;

/// An analysis of certain blocks.
#[derive(Clone, Copy, Debug)]
pub struct Atomicity {
    info: &'static Info,
    blocks: fn(&Trace) -> Blocks,
}

/// Blocks that the trace marks.
pub const MARKED: Atomicity = Atomicity {
    info: &Info {
        name: "atomicity.blocks",
        family: "atomicity",
        kind: Kind::Atomicity,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: true,
        summary: "marked blocks that another thread can spoil",
        paper: "Flanagan, Freund and Yi, PLDI 2008; Lu et al., ASPLOS 2006",
    },
    blocks: blocks::marked,
};

/// Every critical section.
pub const SECTIONS: Atomicity = Atomicity {
    info: &Info {
        name: "atomicity.sections",
        family: "atomicity",
        kind: Kind::Atomicity,
        guarantee: Guarantee::Witnessed,
        needs: Layer::Events,
        is_default: false,
        summary: "critical sections that another thread can spoil",
        paper: "Flanagan, Freund and Yi, PLDI 2008; Lu et al., ASPLOS 2006",
    },
    blocks: blocks::sections,
};

impl Analysis for Atomicity {
    fn info(&self) -> &'static Info {
        self.info
    }

    fn run(&self, subject: &Subject<'_>, settings: &Settings, sink: &mut dyn Sink) -> Coverage {
        let analysis = self.info.name;
        if sink.is_cancelled() {
            let truncated = Some(Truncation::Cancelled);
            return Coverage { analysis, truncated, counters: Vec::new() };
        }
        let blocks = (self.blocks)(subject.trace());
        let mut report = Report::new(analysis, subject, settings, &blocks, sink);
        // A break means that no more findings are wanted.
        if let ControlFlow::Continue(otherwise) = report.report_observed()
            && report.report_predicted().is_continue()
        {
            _ = report.report_otherwise(otherwise);
        }
        report.coverage()
    }
}
