//! The widest vector instructions that the processor has.
//!
//! The walk is plain code over rows of fixed length, which the compiler turns into vector
//! instructions: those that every processor of the kind has. On x86-64 that leaves out the wider
//! ones, which nearly all have today, so the walk is compiled once more for them, and which of the
//! two runs is decided when the program does. What is to be compiled twice must be inlined into
//! [`Work::run`].

/// Something to be done.
pub(super) trait Work {
    /// What comes of it.
    type Output;

    /// Does it. Marked `#[inline(always)]` where it is implemented.
    fn run(self) -> Self::Output;
}

/// Does `work`.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "what is compiled for some processors runs on those alone")]
pub(super) fn run<W: Work>(work: W) -> W::Output {
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has all that the function is compiled for.
        return unsafe { run_wide(work) };
    }
    work.run()
}

/// Does `work`.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn run_wide<W: Work>(work: W) -> W::Output {
    work.run()
}
