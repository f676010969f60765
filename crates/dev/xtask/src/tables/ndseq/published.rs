//! What the paper on NDetermin printed.

/// A row of the paper's Table 1, and the program that stands for it.
pub(super) struct Published {
    pub(super) name: &'static str,
    /// The file in `corpus/programs`, without its ending.
    pub(super) program: &'static str,
    /// What it is; lines of the application, and of the library that it uses; parallel constructs;
    /// focus statements; events; those sliced out.
    cells: &'static str,
    /// None if there is no specification.
    pub(super) placements: Option<usize>,
}

impl Published {
    /// Its row, in the columns of [`COMPARISON_HEAD`](super::COMPARISON_HEAD).
    pub(super) fn row(&self) -> String {
        let Self { name, cells, .. } = self;
        let found =
            self.placements.map_or("– | –".to_owned(), |count| format!("{count} | yes"));
        format!("| **{name}**, published | {cells} | {found} |\n")
    }
}

/// Table 1, as printed, but for the column of manual specifications.
#[rustfmt::skip]
pub(super) const PUBLISHED: [Published; 17] = [
    row("sor", "sor", "successive over-relaxation | 300 | 1 | 1 | 905k | 561k", Some(0)),
    row("matmult", "matmult", "sparse matrix-vector multiplication | 700 | 1 | 1 | 962k | 8k", Some(0)),
    row("series", "series", "coefficients of Fourier series | 800 | 1 | 5 | 2008k | 1215", Some(0)),
    row("crypt", "crypt", "encryption and decryption | 1100 | 2 | 3 | 493k | 100k", Some(0)),
    row("moldyn", "moldyn", "molecular dynamics simulation | 1300 | 4 | 1 | 4517k | 4300k", Some(0)),
    row("lufact", "lufact", "LU factorization | 1500 | 1 | 1 | 1048k | 792k", Some(0)),
    row("raytracer", "raytracer", "ray tracing | 1900 | 1 | 1 | 9125k | 8960k", None),
    row("raytracer (fixed)", "raytracer_fixed", "corrected ray tracing | 1900 | 1 | 1 | 9125k | 8960k", Some(0)),
    row("montecarlo", "montecarlo", "Monte Carlo derivative pricing | 3600 | 1 | 1 | 1723k | 731k", Some(0)),
    row("pi3", "pi3", "Monte Carlo approximation of π | 150 + 15000 | 1 | 1 | 1062k | 141", Some(0)),
    row("keysearch3", "keysearch3", "cryptographic key cracking | 200 + 15000 | 2 | 4 | 1062k | 1049k", Some(0)),
    row("mandelbrot", "mandelbrot", "fractal rendering | 250 + 15000 | 1 | 6 | 576k | 330k", Some(0)),
    row("phylogeny", "phylogeny", "branch-and-bound search | 4400 + 15000 | 2 | 8 | 29k | 24k", None),
    row("phylogeny (fixed)", "phylogeny_fixed", "corrected branch-and-bound search | 4400 + 15000 | 2 | 8 | 29k | 24k", Some(1)),
    row("stack", "stack", "Treiber's non-blocking stack | 40 | 1 | 8 | 1050 | 356", Some(2)),
    row("queue", "queue", "non-blocking queue | 60 | 1 | 8 | 325 | 114", Some(2)),
    row("meshrefine", "meshrefine", "Delaunay mesh refinement | 1000 | 1 | 50 | 930k | 845k", Some(2)),
];

const fn row(
    name: &'static str,
    program: &'static str,
    cells: &'static str,
    placements: Option<usize>,
) -> Published {
    Published { name, program, cells, placements }
}
