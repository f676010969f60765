//! The names that come nearest to one that is not there.

/// So many names are suggested at most.
const SUGGESTED_MAX: usize = 3;

/// Names that differ more in length are not compared.
const DIFFERENCE_MAX: usize = 8;

/// Names that differ in so much more than the nearest one are not suggested.
const FURTHER_MAX: usize = 2;

/// The names of `known` that differ from `name` in the fewest letters, the nearest first.
pub(super) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    let letters: Vec<char> = name.chars().take(64).collect();
    let mut near: Vec<(usize, &str)> = Vec::new();
    for other in known {
        if other.len().abs_diff(name.len()) > DIFFERENCE_MAX {
            continue;
        }
        let entry = (distance(&letters, other), other);
        let at = near.partition_point(|before| *before <= entry);
        if at < SUGGESTED_MAX && !near.contains(&entry) {
            near.insert(at, entry);
            near.truncate(SUGGESTED_MAX);
        }
    }
    let limit = near.first().map_or(0, |(distance, _)| distance + FURTHER_MAX);
    near.retain(|(distance, _)| *distance <= limit);
    near.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// Twice how many letters must be changed, put in or left out; one of the other case counts half.
fn distance(left: &[char], right: &str) -> usize {
    let mut row: Vec<usize> = (0..=left.len()).map(|count| 2 * count).collect();
    for (at, other) in right.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = 2 * (at + 1);
        for (place, &letter) in left.iter().enumerate() {
            let change = match letter == other {
                true => 0,
                false if letter.eq_ignore_ascii_case(&other) => 1,
                false => 2,
            };
            let cheapest = (diagonal + change).min(row[place] + 2).min(row[place + 1] + 2);
            diagonal = row[place + 1];
            row[place + 1] = cheapest;
        }
    }
    row[left.len()]
}
