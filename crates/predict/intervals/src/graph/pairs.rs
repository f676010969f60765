//! Graphs of mutually atomic transactions.
//!
//! Nodes are where the transactions of some pair begin and end, and where threads do; switches
//! are those of the MATs that pass. A position after a dummy access is the thread's end.

use reweave_base::{Id, IndexVec};
use reweave_trace::ThreadId;

use super::build::{Frame, Mode, Settings, add_orders, orders};
use super::switches::Switches;
use super::{Graph, GraphKind, NodeId, Stop};
use crate::ctp::{Ctp, Point};
use crate::lattice::{Lattice, Line};
use crate::mats::{self, Choice, Dummy, Pair};
use crate::movers;

/// The graph of the MATs of every pair of threads, which must have one way each.
pub(super) fn build(
    ctp: &Ctp,
    lattice: &Lattice,
    kind: GraphKind,
    choice: Choice,
    settings: &Settings,
) -> Graph {
    let lines: IndexVec<ThreadId, Line> =
        ctp.threads.ids().map(|thread| Line::new(ctp, lattice.stations(thread), thread)).collect();
    let mut is_node = IndexVec::from_elem(false, ctp.leaving.len());
    for line in lines.iter() {
        is_node[line.points[0]] = true;
        is_node[line.points[line.end()]] = true;
    }
    let dummy = match settings.mode {
        Mode::Sound => Dummy::WhereNeeded,
        Mode::Paper => settings.dummy,
    };
    let (mut switches, mut mats_count) = (Vec::new(), 0);
    for second in ctp.threads.ids() {
        for first in ctp.threads.ids().take(second.index()) {
            let (rows, columns) = (&lines[first], &lines[second]);
            let pair = Pair::new(ctp, lattice, (first, second), (rows, columns), dummy);
            let mats = mats::generate(&pair, choice).mats;
            mats_count += mats.len();
            for mat in mats {
                for (line, begin, end) in
                    [(rows, mat.begin.0, mat.end.0), (columns, mat.begin.1, mat.end.1)]
                {
                    is_node[point(line, begin)] = true;
                    is_node[point(line, end)] = true;
                }
                let [there, back] = mat.switches();
                switches.push((point(rows, there.0), point(columns, there.1)));
                switches.push((point(columns, back.0), point(rows, back.1)));
            }
        }
    }
    let orders = match settings.mode {
        Mode::Sound => Vec::new(),
        Mode::Paper => orders(ctp, lattice),
    };
    orders.iter().for_each(|&(from, to)| {
        is_node[from] = true;
        is_node[to] = true;
    });
    let frame = Frame::new(ctp, &is_node);
    let node = |point| frame.node(point).expect("switches are between nodes");
    let mut switches: Vec<(NodeId, NodeId)> =
        switches.into_iter().map(|(from, to)| (node(from), node(to))).collect();
    switches.sort_unstable();
    switches.dedup();
    let mut graph = frame.graph(ctp, lattice, kind);
    let rules = Switches::new(ctp, lattice, settings.switches, &graph.nodes);
    switches.retain(|&(from, to)| rules.passes(from, to));
    graph.switches = switches;
    graph.mats_count = Some(mats_count);
    add_orders(&mut graph, &orders);
    if settings.mode == Mode::Sound {
        graph.stops = stops(ctp, &graph, &rules);
    }
    graph
}

fn point(line: &Line, position: usize) -> Point {
    line.points[position.min(line.end())]
}

/// Where a thread may stop for good since a guard fails, and who goes on then. At its entry it has
/// done nothing that others would have to know.
fn stops(ctp: &Ctp, graph: &Graph, rules: &Switches<'_>) -> Vec<Stop> {
    let may_fail = movers::may_fail(ctp);
    let mut stops = Vec::new();
    for thread in ctp.threads.ids() {
        let points = &ctp.threads[thread].points;
        for point in (points.start.index() + 1..points.end.index()).map(Point::from_index) {
            let mut steps = ctp.steps_from(point).map(|(id, _)| may_fail[id]).peekable();
            if steps.peek().is_none() || !steps.all(|fails| fails) {
                continue;
            }
            let targets = graph.nodes.entries().filter(|(_, node)| node.thread != thread);
            let targets = targets.map(|(id, _)| id);
            let targets: Vec<NodeId> =
                targets.filter(|&target| rules.resumes(thread, point, target)).collect();
            if !targets.is_empty() {
                stops.push(Stop { point, targets });
            }
        }
    }
    stops
}
