//! What the paper on ParaMount printed of going through all states.

/// The numbers of threads of the published table.
pub(super) const THREADS: [usize; 4] = [1, 2, 4, 8];

/// A row of the paper's Table 1, in seconds, and which poset stands for it.
pub(super) struct Published {
    pub(super) name: &'static str,
    pub(super) spec: &'static str,
    pub(super) states: &'static str,
    /// None if it ran out of memory.
    breadth_first: Option<f64>,
    over_breadth_first: [f64; THREADS.len()],
    lexical: f64,
    over_lexical: [f64; THREADS.len()],
}

/// Table 1, as printed.
pub(super) const PUBLISHED: [Published; 7] = [
    Published {
        name: "d-300",
        spec: "rand:10:300:0.52:35",
        states: "42 million",
        breadth_first: Some(47.0),
        over_breadth_first: [35.9, 19.4, 10.6, 6.9],
        lexical: 3.4,
        over_lexical: [3.5, 1.5, 0.8, 0.5],
    },
    Published {
        name: "d-500",
        spec: "rand:10:500:0.52:23",
        states: "237 million",
        breadth_first: Some(380.8),
        over_breadth_first: [195.4, 100.5, 54.5, 33.6],
        lexical: 17.8,
        over_lexical: [15.3, 7.6, 3.9, 2.1],
    },
    Published {
        name: "d-10K",
        spec: "rand:10:10000:0.505:6",
        states: "4962 million",
        breadth_first: Some(8599.1),
        over_breadth_first: [4089.0, 2190.5, 1150.4, 757.7],
        lexical: 406.8,
        over_lexical: [327.3, 163.4, 105.0, 43.1],
    },
    Published {
        name: "bank",
        spec: "grid:8:12",
        states: "815 million",
        breadth_first: None,
        over_breadth_first: [635.3, 521.4, 372.4, 302.5],
        lexical: 50.8,
        over_lexical: [40.3, 20.5, 11.0, 5.8],
    },
    Published {
        name: "tsp",
        spec: "rand:8:10528:0.74:2",
        states: "13 million",
        breadth_first: Some(8.6),
        over_breadth_first: [7.1, 3.7, 1.9, 1.1],
        lexical: 1.6,
        over_lexical: [1.5, 0.8, 0.4, 2.3],
    },
    Published {
        name: "hedc",
        spec: "rand:12:216:0.5:10",
        states: "4486 million",
        breadth_first: None,
        over_breadth_first: [10850.7, 10182.2, 8032.5, 4646.9],
        lexical: 487.4,
        over_lexical: [406.5, 203.3, 110.8, 72.1],
    },
    Published {
        name: "elevator",
        spec: "rand:12:38528:0.65:1",
        states: "27643 million",
        breadth_first: None,
        over_breadth_first: [28655.3, 13903.2, 6985.4, 3696.2],
        lexical: 4233.8,
        over_lexical: [3491.6, 1742.7, 870.2, 435.7],
    },
];

impl Published {
    /// Its times in the columns of the table.
    pub(super) fn times(&self) -> String {
        let seconds = |value: &f64| format!(" {value:.1} s |");
        let breadth_first =
            self.breadth_first.map_or(" o.o.m. |".to_owned(), |time| seconds(&time));
        format!(
            "| **{}**, published |{breadth_first}{}{}{}\n",
            self.name,
            self.over_breadth_first.iter().map(seconds).collect::<String>(),
            seconds(&self.lexical),
            self.over_lexical.iter().map(seconds).collect::<String>(),
        )
    }

    /// How much faster than the lexical algorithm ParaMount over it is, by threads, but for what is
    /// taken for a misprint.
    pub(super) fn lexical_speed_ups(&self) -> [Option<f64>; THREADS.len()] {
        let mut speed_ups = self.over_lexical.map(|seconds| Some(self.lexical / seconds));
        if self.name == "tsp" {
            speed_ups[THREADS.len() - 1] = None;
        }
        speed_ups
    }

    /// How much faster than breadth-first search ParaMount over it is, by threads, if that ends.
    pub(super) fn breadth_first_speed_ups(&self) -> [Option<f64>; THREADS.len()] {
        self.over_breadth_first.map(|seconds| Some(self.breadth_first? / seconds))
    }
}
