//! How much faster more threads are, drawn.
//!
//! Three panels, side by side: ParaMount over breadth-first search beside that alone, ParaMount over
//! the lexical algorithm beside that alone, and fast enumeration beside itself on one thread. Both axes are
//! logarithmic to base 2; a line that goes up by one for each doubling of threads is ideal.

use super::enumerating::{Cell, Row, Times};
use super::published::{Published, THREADS};
use crate::tables::svg::Svg;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 440.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 370.0;
const LEFT: f64 = 50.0;
const PANEL_WIDTH: f64 = 240.0;
const PANEL_STEP: f64 = 270.0;
const LEGEND: f64 = LEFT + 3.0 * PANEL_STEP + 5.0;

/// The least and the greatest speed-up that is drawn, as powers of two.
const LOWEST: i32 = -1;
const HIGHEST: i32 = 4;

const COLORS: [&str; 7] =
    ["#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#d62728", "#17becf", "#8c564b"];

/// One of the panels: what it shows of published and measured rows.
struct Panel {
    title: &'static str,
    /// Speed-ups by threads.
    published: fn(&Published) -> [Option<f64>; THREADS.len()],
    /// The sequential time and those by threads.
    measured: fn(&Times) -> (Cell, [Cell; THREADS.len()]),
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "ParaMount / breadth first",
        published: Published::breadth_first_speed_ups,
        measured: |times| (times.breadth_first, times.over_breadth_first),
    },
    Panel {
        title: "ParaMount / lexical",
        published: Published::lexical_speed_ups,
        measured: |times| (times.lexical, times.over_lexical),
    },
    Panel {
        title: "fast / fast on one thread",
        published: |_| [None; THREADS.len()],
        measured: |times| (times.fast[0], times.fast),
    },
];

/// The plot of `rows`.
pub(super) fn plot(rows: &[Row]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, "Speed-up against threads");
    for (number, panel) in PANELS.iter().enumerate() {
        let left = LEFT + PANEL_STEP * number as f64;
        draw_axes(left, panel.title, number == 0, &mut svg);
        svg.line(
            &points(left, THREADS.map(|threads| Some(threads as f64))),
            &dashed("#999", "1 3"),
        );
        for (row, color) in rows.iter().zip(COLORS) {
            let published = points(left, (panel.published)(row.published));
            svg.line(&published, &dashed(color, "6 4"));
            let Some(times) = &row.times else { continue };
            let (alone, by_threads) = (panel.measured)(times);
            let measured = by_threads.map(|cell| Some(alone.seconds()? / cell.seconds()?));
            let measured = points(left, measured);
            svg.line(&measured, &format!("stroke=\"{color}\" stroke-width=\"2.5\""));
            measured.iter().for_each(|&point| svg.dot(point, color));
        }
    }
    draw_legend(rows, &mut svg);
    svg.finish()
}

fn dashed(color: &str, dashes: &str) -> String {
    format!("stroke=\"{color}\" stroke-dasharray=\"{dashes}\" stroke-width=\"1.5\"")
}

/// Where the speed-ups are that are known.
fn points(left: f64, speed_ups: [Option<f64>; THREADS.len()]) -> Vec<(f64, f64)> {
    let known = THREADS.into_iter().zip(speed_ups);
    known.filter_map(|(threads, speed_up)| Some((x(left, threads), y(speed_up?)))).collect()
}

fn x(left: f64, threads: usize) -> f64 {
    let (from, to) = ((THREADS[0] as f64).log2(), (THREADS[THREADS.len() - 1] as f64).log2());
    left + 10.0 + ((threads as f64).log2() - from) / (to - from) * (PANEL_WIDTH - 20.0)
}

fn y(speed_up: f64) -> f64 {
    let share = (speed_up.log2() - f64::from(LOWEST)) / f64::from(HIGHEST - LOWEST);
    BOTTOM - share * (BOTTOM - TOP)
}

fn draw_axes(left: f64, title: &str, has_labels: bool, svg: &mut Svg) {
    let middle = left + PANEL_WIDTH / 2.0;
    svg.centred((middle, TOP - 18.0), title);
    svg.centred((middle, BOTTOM + 40.0), "threads");
    for power in LOWEST..=HIGHEST {
        let speed_up = 2.0_f64.powi(power);
        let label = if has_labels { format!("{speed_up} ×") } else { String::new() };
        svg.horizontal(y(speed_up), (left, left + PANEL_WIDTH), &label);
    }
    for threads in THREADS {
        svg.vertical(x(left, threads), (TOP, BOTTOM), &threads.to_string());
    }
}

fn draw_legend(rows: &[Row], svg: &mut Svg) {
    let colors = rows.iter().zip(COLORS).map(|(row, color)| (row.published.name, color, ""));
    let styles = [
        ("ours", "#555", ""),
        ("published", "#555", " stroke-dasharray=\"6 4\""),
        ("ideal", "#999", " stroke-dasharray=\"1 3\""),
    ];
    for (at, (name, color, dashes)) in colors.chain(styles).enumerate() {
        let style = format!("stroke=\"{color}\"{dashes}");
        svg.legend((LEGEND, TOP + 10.0 + 22.0 * at as f64), &style, name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::enumerating::tests::made_up;
    use super::super::published::PUBLISHED;
    use super::*;

    #[test]
    fn the_plot_has_published_and_measured_lines() {
        let rows: Vec<Row> = PUBLISHED.iter().map(made_up).collect();
        let plot = plot(&rows);
        // Four and seven published, seven measured in two panels, and the ideal in each.
        assert_eq!(plot.matches("<polyline ").count(), 4 + 7 + 2 * 7 + 3);
        assert_eq!(plot.matches("stroke-dasharray=\"6 4\"").count(), 4 + 7 + 1);
        // From no gain on one thread to twice on two.
        let ideal = format!("{:.1},{:.1} {:.1},{:.1}", x(LEFT, 1), y(1.0), x(LEFT, 2), y(2.0));
        assert!(plot.contains(&format!("<polyline points=\"{ideal} ")), "{plot}");
        for row in &rows {
            assert!(plot.contains(&format!(">{}</text>", row.published.name)), "{plot}");
        }
        assert!(plot.ends_with("</svg>\n"));
    }

    #[test]
    fn a_misprint_is_not_drawn() {
        let tsp = PUBLISHED.iter().find(|row| row.name == "tsp").unwrap();
        let known = tsp.lexical_speed_ups().map(|speed_up| speed_up.is_some());
        assert_eq!(known, [true, true, true, false]);
    }
}
