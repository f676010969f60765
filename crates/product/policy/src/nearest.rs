//! Which of some names somebody may have meant.

/// Longer names are not compared.
const LETTERS_MAX: usize = 64;

/// The name among `known` that `name` is most like; none if it is like none. Of several that are
/// equally like it, the first.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = name.chars().take(LETTERS_MAX + 1).collect();
    if letters.len() > LETTERS_MAX {
        return None;
    }
    let distances = known.into_iter().map(|other| (distance(&letters, other), other));
    let (distance, nearest) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= letters.len().max(3) / 3).then_some(nearest)
}

/// How many letters must be put in, left out, changed or swapped with the next to make `other` of
/// `letters`.
fn distance(letters: &[char], other: &str) -> usize {
    let wanted: Vec<char> = other.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=letters.len()).collect();
    for (at, &letter) in wanted.iter().enumerate() {
        let mut next = vec![at + 1];
        for (index, &found) in letters.iter().enumerate() {
            let changed = row[index] + usize::from(found != letter);
            let mut least = changed.min(row[index + 1] + 1).min(next[index] + 1);
            let is_swapped =
                at > 0 && index > 0 && found == wanted[at - 1] && letters[index - 1] == letter;
            if is_swapped {
                least = least.min(before[index - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[letters.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_seen_through_and_another_word_is_not() {
        let known = ["race", "race_top", "deadlock", "format"];
        assert_eq!(nearest("rase", known), Some("race"));
        assert_eq!(nearest("dedlock", known), Some("deadlock"));
        assert_eq!(nearest("formats", known), Some("format"));
        assert_eq!(nearest("arce", known), Some("race"));
        assert_eq!(nearest("fromat", known), Some("format"));
        assert_eq!(nearest("leak", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"race".repeat(100), known), None);
    }
}
