//! What the paper on ParaMount printed of going through all states.

/// The numbers of threads of the published table.
pub(super) const THREADS: [usize; 4] = [1, 2, 4, 8];

/// The seconds of an algorithm alone, none if it ran out of memory, and of ParaMount over it by threads.
type Seconds = (Option<f64>, [f64; THREADS.len()]);

/// A row of the paper's Table 1, and which poset stands for it.
pub(super) struct Published {
    pub(super) name: &'static str,
    pub(super) spec: &'static str,
    pub(super) states: &'static str,
    breadth_first: Seconds,
    lexical: Seconds,
}

const fn row(
    [name, spec, states]: [&'static str; 3],
    breadth_first: Seconds,
    lexical: Seconds,
) -> Published {
    Published { name, spec, states, breadth_first, lexical }
}

/// Table 1, as printed.
#[rustfmt::skip]
pub(super) const PUBLISHED: [Published; 7] = [
    row(["d-300", "rand:10:300:0.52:35", "42 million"],
        (Some(47.0), [35.9, 19.4, 10.6, 6.9]), (Some(3.4), [3.5, 1.5, 0.8, 0.5])),
    row(["d-500", "rand:10:500:0.52:23", "237 million"],
        (Some(380.8), [195.4, 100.5, 54.5, 33.6]), (Some(17.8), [15.3, 7.6, 3.9, 2.1])),
    row(["d-10K", "rand:10:10000:0.505:6", "4962 million"],
        (Some(8599.1), [4089.0, 2190.5, 1150.4, 757.7]), (Some(406.8), [327.3, 163.4, 105.0, 43.1])),
    row(["bank", "grid:8:12", "815 million"],
        (None, [635.3, 521.4, 372.4, 302.5]), (Some(50.8), [40.3, 20.5, 11.0, 5.8])),
    row(["tsp", "rand:8:10528:0.74:2", "13 million"],
        (Some(8.6), [7.1, 3.7, 1.9, 1.1]), (Some(1.6), [1.5, 0.8, 0.4, 2.3])),
    row(["hedc", "rand:12:216:0.5:10", "4486 million"],
        (None, [10850.7, 10182.2, 8032.5, 4646.9]), (Some(487.4), [406.5, 203.3, 110.8, 72.1])),
    row(["elevator", "rand:12:38528:0.65:1", "27643 million"],
        (None, [28655.3, 13903.2, 6985.4, 3696.2]), (Some(4233.8), [3491.6, 1742.7, 870.2, 435.7])),
];

impl Published {
    /// Its times in the columns of the table.
    pub(super) fn times(&self) -> String {
        let mut row = format!("| **{}**, published |", self.name);
        for (alone, by_threads) in [self.breadth_first, self.lexical] {
            row += &alone.map_or(" o.o.m. |".to_owned(), |seconds| format!(" {seconds:.1} s |"));
            row.extend(by_threads.map(|seconds| format!(" {seconds:.1} s |")));
        }
        row + "\n"
    }

    /// How much faster than the lexical algorithm ParaMount over it is, by threads, but for what is
    /// taken for a misprint.
    pub(super) fn lexical_speed_ups(&self) -> [Option<f64>; THREADS.len()] {
        let mut speed_ups = speed_ups(self.lexical);
        if self.name == "tsp" {
            speed_ups[THREADS.len() - 1] = None;
        }
        speed_ups
    }

    /// How much faster than breadth-first search ParaMount over it is, by threads, if that ends.
    pub(super) fn breadth_first_speed_ups(&self) -> [Option<f64>; THREADS.len()] {
        speed_ups(self.breadth_first)
    }
}

fn speed_ups((alone, by_threads): Seconds) -> [Option<f64>; THREADS.len()] {
    by_threads.map(|seconds| Some(alone? / seconds))
}
