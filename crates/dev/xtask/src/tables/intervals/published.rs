//! The published numbers: Tables 1 and 2 of Ganai and Wang (RV 2010).

/// What is printed of one program.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Of CCFG, TSG and TSG': `#M` (the control flow graph has none), `#C`, `#TE`, `t (s)`, `RB_l`,
    /// `RB_g`.
    pub(super) graphs: [[&'static str; 6]; 3],
    /// Whether the property of Table 2 can be reached.
    pub(super) is_satisfiable: bool,
    /// Seconds with 32 bits and with the bits of the ranges, for each graph.
    pub(super) solving: [(&'static str, &'static str); 3],
}

const LESS: (&str, &str) = ("< 1", "< 1");

/// The programs in the order of the paper.
#[rustfmt::skip]
pub(super) const PUBLISHED: [Row; 14] = [
    Row { name: "cp1", is_satisfiable: true, solving: [LESS, LESS, LESS], graphs: [
        ["–", "90", "24", "< 1", "6", "131"], ["18", "22", "13", "< 1", "6", "82"], ["9", "14", "9", "< 1", "6", "50"]] },
    Row { name: "cp2", is_satisfiable: true, solving: [("4", "< 1"), ("3", "< 1"), ("1", "< 1")], graphs: [
        ["–", "1562", "88", "< 1", "22", "531"], ["330", "342", "45", "< 1", "22", "354"], ["121", "222", "25", "< 1", "22", "178"]] },
    Row { name: "cp3", is_satisfiable: true, solving: [("TO", "432"), ("366", "10"), ("34", "5")], graphs: [
        ["–", "35802", "408", "13", "102", "2531"], ["7650", "7702", "205", "2", "102", "1714"], ["2601", "5102", "105", "1", "102", "818"]] },
    Row { name: "atom1", is_satisfiable: true, solving: [LESS, LESS, LESS], graphs: [
        ["–", "44", "16", "< 1", "29", "493"], ["11", "14", "11", "< 1", "29", "300"], ["6", "9", "8", "< 1", "29", "200"]] },
    Row { name: "atom2", is_satisfiable: true, solving: [LESS, LESS, LESS], graphs: [
        ["–", "68", "20", "< 1", "30", "647"], ["14", "19", "13", "< 1", "30", "389"], ["8", "12", "9", "< 1", "30", "245"]] },
    Row { name: "atom3", is_satisfiable: true, solving: [("6", "3"), ("15", "6"), ("3", "1")], graphs: [
        ["–", "4748", "153", "< 1", "61", "10.5K"], ["1321", "1350", "91", "< 1", "61", "6945"], ["478", "865", "48", "< 1", "61", "3605"]] },
    Row { name: "atom4", is_satisfiable: true, solving: [("35", "44"), ("15", "4"), ("4", "2")], graphs: [
        ["–", "5336", "160", "1", "32", "12.4K"], ["1344", "1342", "95", "< 1", "32", "7933"], ["508", "899", "50", "< 1", "32", "4115"]] },
    Row { name: "bank1", is_satisfiable: false, solving: [("6", "6"), ("1", "< 1"), ("1", "< 1")], graphs: [
        ["–", "12.6K", "180", "10", "855", "22.8K"], ["178", "278", "75", "< 1", "808", "10.6K"], ["178", "278", "75", "< 1", "808", "10.6K"]] },
    Row { name: "bank2", is_satisfiable: false, solving: [("16", "15"), ("2", "1"), ("2", "1")], graphs: [
        ["–", "25.1K", "231", "63", "818", "35.9K"], ["440", "559", "155", "1", "771", "25.1K"], ["277", "409", "115", "< 1", "771", "19K"]] },
    Row { name: "bank3", is_satisfiable: false, solving: [("16", "15"), ("2", "1"), ("2", "1")], graphs: [
        ["–", "24.8K", "240", "38", "834", "38.3K"], ["384", "454", "147", "< 1", "786", "24.7K"], ["212", "320", "99", "1", "786", "16.6K"]] },
    Row { name: "index1", is_satisfiable: false, solving: [("4", "4"), ("1", "< 1"), ("1", "< 1")], graphs: [
        ["–", "7224", "98", "2", "52", "7653"], ["6", "12", "12", "< 1", "32", "452"], ["6", "12", "12", "< 1", "32", "452"]] },
    Row { name: "index2", is_satisfiable: false, solving: [("40", "41"), ("2", "1"), ("2", "1")], graphs: [
        ["–", "40.1K", "213", "51", "154", "43.5K"], ["351", "513", "106", "1", "132", "11.6K"], ["225", "366", "64", "1", "132", "6613"]] },
    Row { name: "index3", is_satisfiable: false, solving: [("TO", "TO"), ("30", "23"), ("24", "15")], graphs: [
        ["–", "627K", "821", "TO", "NA", "NA"], ["2573", "3386", "496", "40", "883", "399K"], ["1399", "2024", "265", "22", "883", "121K"]] },
    Row { name: "index4", is_satisfiable: false, solving: [("TO", "TO"), ("TO", "TO"), ("TO", "252")], graphs: [
        ["–", "1.98M", "1490", "TO", "NA", "NA"], ["29.6K", "31.4K", "922", "822", "1814", "1M"], ["10.8K", "11.9K", "479", "275", "1814", "307K"]] },
];
