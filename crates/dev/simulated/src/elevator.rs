//! Lifts that go up and down and serve the floors where someone pressed a button.

use std::rc::Rc;

use reweave_trace::{LockId, Trace, VarId};

use crate::machine::{Thread, run};

const SLICE: usize = 10;
const LIFTS: usize = 3;
const FLOORS: usize = 10;

/// How large a building is, and for how long it is in use.
pub(crate) struct Size {
    /// How often each lift passes each floor.
    pub(crate) passes: usize,
    /// How many buttons are pressed.
    pub(crate) presses: usize,
    /// How many variables the floors have besides their buttons, and how many of them a lift looks
    /// at when it passes.
    pub(crate) fittings: usize,
    pub(crate) looks: usize,
    /// Local steps from one floor to the next.
    pub(crate) steps: usize,
}

struct Floor {
    lock: LockId,
    /// Whether someone wants to go up or down.
    buttons: [VarId; 2],
    fittings: Vec<VarId>,
}

struct Building {
    controls: LockId,
    served: VarId,
    floors: Vec<Floor>,
}

pub(crate) fn trace(seed: u64, size: Size) -> Trace {
    run(seed, SLICE, move |me| main(me, Rc::new(size)))
}

fn floor(me: &Thread, number: usize, fittings: usize) -> Floor {
    let fittings = fittings / FLOORS + usize::from(number < fittings % FLOORS);
    let button = |way| me.var(&format!("floor{number}.{way}"), 0);
    Floor {
        lock: me.mutex(&format!("floor{number}")),
        buttons: [button("up"), button("down")],
        fittings: (0..fittings)
            .map(|fitting| me.var(&format!("floor{number}.fitting{fitting}"), 1))
            .collect(),
    }
}

async fn main(me: Thread, size: Rc<Size>) {
    let building = Rc::new(Building {
        controls: me.mutex("controls"),
        served: me.var("controls.served", 0),
        floors: (0..FLOORS).map(|number| floor(&me, number, size.fittings)).collect(),
    });
    let mut lifts = Vec::new();
    for number in 0..LIFTS {
        let (building, size) = (Rc::clone(&building), Rc::clone(&size));
        lifts.push(me.fork(&format!("lift{number}"), move |me| lift(me, building, size)).await);
    }
    for press in 0..size.presses {
        let floor = &building.floors[press * 7 % FLOORS];
        me.lock(floor.lock).await;
        me.write(floor.buttons[press / FLOORS % 2], 1).await;
        me.unlock(floor.lock).await;
        me.work(size.steps).await;
    }
    for lift in lifts {
        me.join(lift).await;
    }
    me.lock(building.controls).await;
    me.read(building.served).await;
    me.unlock(building.controls).await;
}

async fn lift(me: Thread, building: Rc<Building>, size: Rc<Size>) {
    let mut served = 0;
    for pass in 0..size.passes {
        for stop in 0..FLOORS {
            let way = pass % 2;
            let number = if way == 0 { stop } else { FLOORS - 1 - stop };
            let floor = &building.floors[number];
            me.work(size.steps).await;
            me.lock(floor.lock).await;
            for look in 0..size.looks {
                if let Some(&fitting) = floor.fittings.get(look % floor.fittings.len().max(1)) {
                    me.read(fitting).await;
                }
            }
            let buttons = [me.read(floor.buttons[0]).await, me.read(floor.buttons[1]).await];
            if me.test(buttons[way] > 0).await {
                me.write(floor.buttons[way], 0).await;
                served += 1;
            }
            if way == 0 {
                // Who goes up holds the door for those who come late.
                me.read(floor.buttons[way]).await;
            }
            me.unlock(floor.lock).await;
        }
    }
    me.lock(building.controls).await;
    me.add(building.served, served).await;
    me.unlock(building.controls).await;
}
