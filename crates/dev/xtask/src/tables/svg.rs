//! The pieces of a line plot.

use std::fmt::Write as _;

/// A plot that is being drawn, on white.
pub(super) struct Svg(String);

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <title>{title}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        ))
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes any text");
    }

    /// A text around `x`.
    pub(super) fn centred(&mut self, (x, y): (f64, f64), text: &str) {
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{text}</text>"
        ));
    }

    /// A horizontal line of the grid, with its label, which may be empty, before it.
    pub(super) fn horizontal(&mut self, y: f64, (left, right): (f64, f64), label: &str) {
        self.push(format_args!("<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>"));
        let (x, y) = (left - 7.0, y + 4.0);
        self.push(format_args!("<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{label}</text>"));
    }

    /// A vertical line of the grid, with its label below it.
    pub(super) fn vertical(&mut self, x: f64, (top, bottom): (f64, f64), label: &str) {
        self.push(format_args!("<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#ddd\"/>"));
        self.centred((x, bottom + 18.0), label);
    }

    /// A line through `points`, if there are any.
    pub(super) fn line(&mut self, points: &[(f64, f64)], style: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        if !points.is_empty() {
            let points = points.join(" ");
            self.push(format_args!("<polyline points=\"{points}\" fill=\"none\" {style}/>"));
        }
    }

    /// A dot.
    pub(super) fn dot(&mut self, (x, y): (f64, f64), color: &str) {
        self.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>"));
    }

    /// An entry of the legend: a short line of this style, and a name.
    pub(super) fn legend(&mut self, (x, y): (f64, f64), style: &str, name: &str) {
        self.push(format_args!("<path d=\"M{x} {y}h25\" {style} stroke-width=\"2\"/>"));
        let (x, y) = (x + 32.0, y + 4.0);
        self.push(format_args!("<text x=\"{x}\" y=\"{y}\">{name}</text>"));
    }

    pub(super) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}
