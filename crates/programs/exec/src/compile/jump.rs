//! Jumps out of blocks: `break`, `continue`, `return`.

use reweave_base::Id;
use reweave_lang::{BlockId, ExprId, FunctionId};

use super::Compiler;
use crate::code::{Address, Instruction, Register, Symbol};

/// What a jump can leave, from the outside in.
#[derive(Clone, Debug)]
pub(super) enum Level {
    /// The body of a thread.
    Thread,
    /// The body of a function.
    Function(FunctionId),
    /// A block, at one of its statements.
    Block { block: BlockId, position: u32, scope_depth: u16, control_depth: u16 },
    /// A loop, and the jumps that leave it or go on with it.
    Loop { scope_depth: u16, control_depth: u16, breaks: Vec<Address>, continues: Vec<Address> },
    /// A section, and what ends it.
    Section(Instruction),
}

/// How far a jump goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// To the end of the innermost loop's body.
    Continue,
    /// Out of the innermost loop.
    Break,
    /// Out of the function or thread.
    Return,
}

impl Compiler<'_> {
    pub(super) fn continue_loop(&mut self) {
        self.leave(Goal::Continue);
        let jump = self.emit(Instruction::Jump { target: 0 });
        if let Some(Level::Loop { continues, .. }) = self.innermost_loop() {
            continues.push(jump);
        }
    }

    pub(super) fn break_loop(&mut self) {
        self.leave(Goal::Break);
        let jump = self.emit(Instruction::Jump { target: 0 });
        if let Some(Level::Loop { breaks, .. }) = self.innermost_loop() {
            breaks.push(jump);
        }
    }

    pub(super) fn return_value(&mut self, value: Option<ExprId>) {
        let function = match self.levels.first() {
            Some(&Level::Function(function)) => Some(function),
            _ => None,
        };
        if let Some(function) = function {
            let mark = self.here();
            let result = self.results[function.index()];
            if let Some(value) = value {
                let symbol = self.flatten(value);
                self.assign(result, symbol, mark);
            } else if self.gives_result[function.index()] {
                let zero = self.constant_symbol(0);
                self.assign(result, zero, mark);
            }
        }
        self.leave(Goal::Return);
        if function.is_some() {
            self.emit(Instruction::Return);
            return;
        }
        let jump = self.here();
        match &mut self.main_returns {
            Some(returns) => {
                returns.push(jump);
                self.emit(Instruction::Jump { target: 0 });
            }
            None => {
                self.emit(Instruction::End);
            }
        }
    }

    fn innermost_loop(&mut self) -> Option<&mut Level> {
        self.levels.iter_mut().rev().find(|level| matches!(level, Level::Loop { .. }))
    }

    /// Ends the sections that are left, and tests a flag wherever statements are left out.
    fn leave(&mut self, goal: Goal) {
        let (span, scope_depth, control_depth) = (self.span, self.scope_depth, self.control_depth);
        let mut flag = None;
        for number in (0..self.levels.len()).rev() {
            match self.levels[number].clone() {
                Level::Thread | Level::Function(_) => {}
                Level::Section(end) => {
                    self.event(end, &[], None);
                }
                Level::Block { block, position, scope_depth, control_depth } => {
                    let last = self.program.blocks[block].statements.len() as u32 - 1;
                    // A loop that is broken out of tests the flag itself, which says as much.
                    if position < last && goal != Goal::Break {
                        let flag = self.flag(&mut flag);
                        (self.scope_depth, self.control_depth) = (scope_depth, control_depth);
                        self.emit(Instruction::Begin { position: last, depth: scope_depth });
                        self.guard(flag);
                    }
                }
                Level::Loop { scope_depth, control_depth, .. } => {
                    if goal == Goal::Continue {
                        break;
                    }
                    let flag = self.flag(&mut flag);
                    (self.scope_depth, self.control_depth) = (scope_depth, control_depth);
                    self.guard(flag);
                    if goal == Goal::Break {
                        break;
                    }
                }
            }
        }
        (self.span, self.scope_depth, self.control_depth) = (span, scope_depth, control_depth);
    }

    /// The flag of the jump that is being compiled, set when it is first needed.
    fn flag(&mut self, flag: &mut Option<Register>) -> Register {
        if let Some(flag) = *flag {
            return flag;
        }
        let register = self.temporary("");
        let one = self.constant_symbol(1);
        self.assign(register, one, self.here());
        *flag = Some(register);
        register
    }

    fn guard(&mut self, flag: Register) {
        let symbol = self.symbol(Symbol::Register(flag));
        let address = self.event(Instruction::Guard { flag }, &[symbol], None);
        self.effect(address).value = Some(symbol);
    }
}
