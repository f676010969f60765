//! `--verbose`: which stages ran, how long each took, and internal counters.
//!
//! Libraries open a `tracing` span per stage and never read a clock; the layer here does. Without
//! `--verbose` there is no subscriber, and a span costs one load of an atomic.

use std::fmt::{Debug, Write as _};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit::say;

/// Prints stages from now on: with `count` 1 the stages, with more their details.
pub fn start(count: u8) {
    let level_max = match count {
        0 => return,
        1 => Level::INFO,
        _ => Level::DEBUG,
    };
    // It fails only where there is one already.
    _ = Registry::default().with(StageLog { level_max }).try_init();
}

struct StageLog {
    level_max: Level,
}

/// A stage that is under way.
struct Stage {
    started: Instant,
    fields: Fields,
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for StageLog {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target().starts_with("reweave") && *metadata.level() <= self.level_max
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Stage { started: Instant::now(), fields });
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(stage) = span.extensions_mut().get_mut::<Stage>() {
            values.record(&mut stage.fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        say(&format!("reweave:{}", fields.text));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        if let Some(Stage { started, fields }) = span.extensions().get::<Stage>() {
            say(&format!("reweave: {}{} ({})", span.name(), fields.text, time(started.elapsed())));
        }
    }
}

/// The fields of a span or an event, as text.
#[derive(Default)]
struct Fields {
    text: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        _ = match field.name() {
            "message" => write!(self.text, " {value:?}"),
            name => write!(self.text, " {name}={value:?}"),
        };
    }
}

/// `duration` in milliseconds, or in seconds if it is long.
fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
