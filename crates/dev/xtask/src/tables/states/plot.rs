//! How much faster more threads are, drawn.
//!
//! Three panels, side by side: ParaMount over breadth-first search beside that alone, ParaMount over
//! the lexical algorithm beside that alone, and fast enumeration beside itself on one thread. Both axes are
//! logarithmic to base 2; a line that goes up by one for each doubling of threads is ideal.

use std::fmt::Write as _;

use super::enumerating::{Cell, Row, Times};
use super::published::{Published, THREADS};

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

/// One of the panels: what is told in it of published and measured rows.
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
pub(super) fn plot(rows: &[Row]) -> anyhow::Result<String> {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Speed-up against threads</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for (number, panel) in PANELS.iter().enumerate() {
        let left = LEFT + PANEL_STEP * number as f64;
        draw_axes(left, panel.title, number == 0, &mut svg)?;
        draw_line(
            left,
            THREADS.map(|threads| Some(threads as f64)),
            "#999",
            Some("1 3"),
            &mut svg,
        )?;
        for (row, color) in rows.iter().zip(COLORS) {
            draw_line(left, (panel.published)(row.published), color, Some("6 4"), &mut svg)?;
            let Some(times) = &row.times else { continue };
            let (alone, by_threads) = (panel.measured)(times);
            let speed_ups = by_threads.map(|cell| Some(alone.seconds()? / cell.seconds()?));
            draw_line(left, speed_ups, color, None, &mut svg)?;
        }
    }
    draw_legend(rows, &mut svg)?;
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn x(left: f64, threads: usize) -> f64 {
    let (from, to) = ((THREADS[0] as f64).log2(), (THREADS[THREADS.len() - 1] as f64).log2());
    left + 10.0 + ((threads as f64).log2() - from) / (to - from) * (PANEL_WIDTH - 20.0)
}

fn y(speed_up: f64) -> f64 {
    let share = (speed_up.log2() - f64::from(LOWEST)) / f64::from(HIGHEST - LOWEST);
    BOTTOM - share * (BOTTOM - TOP)
}

fn draw_axes(left: f64, title: &str, has_labels: bool, svg: &mut String) -> anyhow::Result<()> {
    let (right, middle) = (left + PANEL_WIDTH, left + PANEL_WIDTH / 2.0);
    writeln!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{title}</text>\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">threads</text>",
        TOP - 18.0,
        BOTTOM + 40.0,
    )?;
    for power in LOWEST..=HIGHEST {
        let speed_up = 2.0_f64.powi(power);
        let y = y(speed_up);
        writeln!(svg, "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>")?;
        if has_labels {
            writeln!(
                svg,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{speed_up} ×</text>",
                left - 6.0,
                y + 4.0,
            )?;
        }
    }
    for threads in THREADS {
        let x = x(left, threads);
        writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{threads}</text>",
            BOTTOM + 18.0,
        )?;
    }
    Ok(())
}

/// A line through the speed-ups that are known, with a dot at each.
fn draw_line(
    left: f64,
    speed_ups: [Option<f64>; THREADS.len()],
    color: &str,
    dashes: Option<&str>,
    svg: &mut String,
) -> anyhow::Result<()> {
    let known = THREADS.iter().zip(speed_ups);
    let known = known.filter_map(|(&threads, speed_up)| Some((x(left, threads), y(speed_up?))));
    let points: Vec<String> = known.clone().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    if points.is_empty() {
        return Ok(());
    }
    let weight = match dashes {
        Some(dashes) => format!("stroke-dasharray=\"{dashes}\" stroke-width=\"1.5\""),
        None => "stroke-width=\"2.5\"".to_owned(),
    };
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" {weight}/>",
        points.join(" "),
    )?;
    if dashes.is_none() {
        for (x, y) in known {
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>")?;
        }
    }
    Ok(())
}

fn draw_legend(rows: &[Row], svg: &mut String) -> anyhow::Result<()> {
    let colors = rows.iter().zip(COLORS).map(|(row, color)| (row.published.name, color, ""));
    let styles = [
        ("ours", "#555", ""),
        ("published", "#555", " stroke-dasharray=\"6 4\""),
        ("ideal", "#999", " stroke-dasharray=\"1 3\""),
    ];
    for (at, (name, color, dashes)) in colors.chain(styles).enumerate() {
        let y = TOP + 10.0 + 22.0 * at as f64;
        writeln!(
            svg,
            "<path d=\"M{LEGEND} {y}h25\" stroke=\"{color}\"{dashes} stroke-width=\"2\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            LEGEND + 32.0,
            y + 4.0,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::enumerating::tests::made_up;
    use super::super::published::PUBLISHED;
    use super::*;

    #[test]
    fn the_plot_has_published_and_measured_lines() {
        let rows: Vec<Row> = PUBLISHED.iter().map(made_up).collect();
        let plot = plot(&rows).unwrap();
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
