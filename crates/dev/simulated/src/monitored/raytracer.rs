//! A ray tracer: threads draw rows of a picture of spheres, each on its own, and add what they have
//! drawn to one checksum in the end, without a lock.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use super::together;
use crate::machine::{Thread, run};

const SLICE: usize = 2;
const TRACERS: usize = 4;
const SPHERES: usize = 64;
const LIGHTS: usize = 5;
const ROWS: i64 = 160;

struct Scene {
    view: VarId,
    spheres: Vec<VarId>,
    lights: Vec<VarId>,
    rows: LockId,
    next: VarId,
    done: VarId,
    /// How many rows each thread has drawn.
    drawn: Vec<VarId>,
    checksum: VarId,
}

pub(crate) fn trace(seed: u64) -> Trace {
    run(seed, SLICE, main)
}

async fn main(me: Thread) {
    let numbered = |name: &str, count: usize, value: i64| -> Vec<VarId> {
        (0..count).map(|at| me.var(&format!("{name}[{at}]"), value)).collect()
    };
    let scene = Rc::new(Scene {
        view: me.var("view", 3),
        spheres: numbered("sphere", SPHERES, 7),
        lights: numbered("light", LIGHTS, 2),
        rows: me.mutex("rows"),
        next: me.var("rows.next", 0),
        done: me.var("rows.done", 0),
        drawn: numbered("drawn", TRACERS, 0),
        checksum: me.var("checksum", 0),
    });
    together(&me, TRACERS, |me, number| tracer(me, Rc::clone(&scene), number)).await;
    me.read(scene.checksum).await;
}

async fn tracer(me: Thread, scene: Rc<Scene>, number: usize) {
    let view = me.read(scene.view).await;
    let mut sum = 0;
    loop {
        me.lock(scene.rows).await;
        let row = me.add(scene.next, 1).await;
        me.unlock(scene.rows).await;
        if me.test(row >= ROWS).await {
            break;
        }
        sum += draw(&me, &scene, view + row).await;
        me.add(scene.drawn[number], 1).await;
        me.lock(scene.rows).await;
        me.add(scene.done, 1).await;
        me.unlock(scene.rows).await;
    }
    // The fault: two threads may read the same checksum, and then one sum is lost.
    me.add(scene.checksum, sum).await;
}

async fn draw(me: &Thread, scene: &Scene, mut ray: i64) -> i64 {
    for &sphere in &scene.spheres {
        ray = (ray * 31 + me.read(sphere).await) % 255;
    }
    for &light in &scene.lights {
        ray += me.read(light).await;
    }
    ray
}
