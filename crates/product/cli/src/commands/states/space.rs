//! The poset whose states are asked about: that of a trace, or one that is given.

use std::path::PathBuf;

use anyhow::Context as _;
use reweave_format::{Input, RawPoset};
use reweave_order::poset::{
    IllFormedPoset, Poset, PosetBuilder, Relation, TracePoset, collections, raw,
};
use reweave_report::compact;
use reweave_trace::Trace;
use serde_json::{Value, json};

use crate::input;

/// Which events in which order.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The trace or poset to read; `-` is standard input
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// What counts as one event of a trace [default: collections]
    #[arg(long, value_enum)]
    events: Option<EventsName>,
    /// Order of the events of a trace [default: hb]
    #[arg(long, value_enum)]
    order: Option<OrderName>,
    /// Repair a trace whose events cannot have happened, list the changes
    #[arg(long)]
    repair: bool,
}

/// What counts as an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum EventsName {
    /// consecutive accesses of a thread without synchronisation are one event
    #[default]
    Collections,
    /// every event of the trace
    Raw,
}

impl EventsName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Collections => "collections",
            Self::Raw => "raw",
        }
    }
}

/// Which order events have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OrderName {
    /// happens-before: after a racy read, some states may be unreachable
    #[default]
    Hb,
    /// trace-order-preserving: every state is reachable
    Preserving,
}

impl OrderName {
    pub(crate) const fn relation(self) -> Relation {
        match self {
            Self::Hb => Relation::HappensBefore,
            Self::Preserving => Relation::TraceOrderPreserving,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Hb => "happens-before",
            Self::Preserving => "trace-order-preserving",
        }
    }
}

/// Events in their order, and where they come from.
pub(crate) struct Space {
    /// The input, as the command line has it.
    pub(crate) path: String,
    origin: Origin,
}

enum Origin {
    Given(Poset),
    Traced { trace: Box<Trace>, poset: TracePoset, events: EventsName, order: OrderName },
}

impl Source {
    /// Reads the input.
    pub(crate) fn read(&self) -> anyhow::Result<Space> {
        let origin = match input::read_either(&self.input, self.repair)? {
            Input::Trace(reading) => self.traced(reading.trace).map_err(anyhow::Error::from),
            Input::Poset(raw) => self.given(&raw),
        };
        let origin = origin.with_context(|| input::name(&self.input))?;
        Ok(Space { path: self.input.display().to_string(), origin })
    }

    /// Reads the input, a trace, of which every event counts.
    pub(crate) fn read_raw(&self) -> anyhow::Result<Space> {
        anyhow::ensure!(
            self.events != Some(EventsName::Collections),
            "`--predicate` needs every event: use `--events raw`"
        );
        let trace = input::read(&self.input, self.repair)?.trace;
        let raw = Self { events: Some(EventsName::Raw), input: self.input.clone(), ..*self };
        let origin = raw.traced(trace).with_context(|| input::name(&self.input))?;
        Ok(Space { path: self.input.display().to_string(), origin })
    }

    fn traced(&self, trace: Trace) -> Result<Origin, IllFormedPoset> {
        let (events, order) = (self.events.unwrap_or_default(), self.order.unwrap_or_default());
        let relation = order.relation();
        let poset = match events {
            EventsName::Collections => TracePoset::new(&trace, relation, collections)?,
            EventsName::Raw => TracePoset::new(&trace, relation, raw)?,
        };
        Ok(Origin::Traced { trace: Box::new(trace), poset, events, order })
    }

    fn given(&self, raw: &RawPoset) -> anyhow::Result<Origin> {
        let options = [("--events", self.events.is_some()), ("--order", self.order.is_some())];
        for (option, is_given) in options {
            anyhow::ensure!(
                !is_given,
                "a poset has its own events and order: `{option}` is for traces"
            );
        }
        let mut builder = PosetBuilder::new(raw.chains_count())?;
        for (number, (chain, clock)) in (1..).zip(raw.events()) {
            builder.push(chain, clock).with_context(|| format!("event {number}"))?;
        }
        Ok(Origin::Given(builder.finish()))
    }
}

impl Space {
    /// The events in their order.
    pub(crate) const fn poset(&self) -> &Poset {
        match &self.origin {
            Origin::Given(poset) => poset,
            Origin::Traced { poset, .. } => poset.poset(),
        }
    }

    /// The trace, and the thread of each chain, unless it is a poset.
    pub(crate) fn traced(&self) -> Option<(&Trace, &TracePoset)> {
        match &self.origin {
            Origin::Given(_) => None,
            Origin::Traced { trace, poset, .. } => Some((trace, poset)),
        }
    }

    /// What each chain is called: by its thread, or its number in a poset.
    pub(crate) fn chain_names(&self) -> Vec<String> {
        match &self.origin {
            Origin::Given(poset) => (0..poset.chains_count()).map(|it| it.to_string()).collect(),
            Origin::Traced { trace, poset, .. } => {
                let threads = &trace.names().threads;
                poset.threads().iter().map(|&thread| threads.name(thread).to_owned()).collect()
            }
        }
    }

    /// For each event, in the order of the poset, its number in the trace; for a collection that
    /// of its first event. In a poset, its number there.
    pub(crate) fn event_numbers(&self) -> Vec<u32> {
        match &self.origin {
            Origin::Given(poset) => (1..=poset.len() as u32).collect(),
            Origin::Traced { poset, .. } => {
                let events = poset.poset().events();
                let first = events.filter_map(|(chain, index)| poset.first(chain, index));
                first.map(|event| event.number()).collect()
            }
        }
    }

    /// The order, as a sentence.
    pub(crate) fn order_sentence(&self) -> String {
        match &self.origin {
            Origin::Given(_) => "The order is that of the poset.".to_owned(),
            Origin::Traced { events, order, .. } => {
                let events = match events {
                    EventsName::Collections => {
                        "accesses between two synchronizations are one event"
                    }
                    EventsName::Raw => "every event counts",
                };
                format!("The order is {}; {events}.", order.name())
            }
        }
    }

    /// What its JSON says of it.
    pub(crate) fn document(&self) -> Value {
        let (input, order, events_of, repaired) = match &self.origin {
            Origin::Given(_) => ("poset", "given", None, None),
            Origin::Traced { trace, events, order, .. } => {
                let repaired = trace.repairs().iter().map(ToString::to_string);
                let repaired: Vec<String> = repaired.collect();
                let repaired = (!repaired.is_empty()).then_some(repaired);
                ("trace", order.relation().as_str(), Some(events.as_str()), repaired)
            }
        };
        compact(json!({
            "schema": reweave_report::SCHEMA,
            "path": self.path,
            "input": input,
            "order": order,
            "events_of": events_of,
            "repaired": repaired,
            "threads": self.chain_names(),
            "chains": self.poset().chains_count(),
            "events": self.poset().len(),
        }))
    }
}
