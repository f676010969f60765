//! All tests of this package from outside, as one program: fewer programs link faster.

mod corpus;
mod parquet;
mod posets;
mod regressions;
mod robust;
mod rwt;
mod text_errors;
mod text_files;
mod text_round_trips;
mod timelines;
