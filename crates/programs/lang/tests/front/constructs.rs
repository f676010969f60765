//! Every construct of the language, and what it is resolved to.

use expect_test::{Expect, expect};
use reweave_lang::{Source, StatementKind, check as check_source};

use super::dump::dump;
use super::program;

#[track_caller]
fn check(text: &str, expected: Expect) {
    expected.assert_eq(&dump(&program(text)));
}

#[test]
fn declarations_have_lengths_and_first_values() {
    check(
        "shared x; shared y = -3 + 2 * 5; shared a[4]; shared b[0x10] = 7;
         lock m; lock n[2]; cond c;
         thread t { }",
        expect![[r#"
            shared x = 0
            shared y = 7
            shared a[4] = 0
            shared b[16] = 7
            lock m
            lock n[2]
            cond c
            focus x, y, a, b
            thread t
        "#]],
    );
}

#[test]
fn a_first_value_wraps_and_the_smallest_number_can_be_written() {
    check(
        "shared least = -9223372036854775808; shared most = 0x7fffffffffffffff;
         shared wrapped = 9223372036854775807 + 1; shared shifted = 1 << 65; shared decided = 0 && 1;
         main { }",
        expect![[r#"
            shared least = -9223372036854775808
            shared most = 9223372036854775807
            shared wrapped = -9223372036854775808
            shared shifted = 2
            shared decided = 0
            focus least, most, wrapped, shifted, decided
            main
        "#]],
    );
}

#[test]
fn the_focus_is_what_is_named_in_that_order_or_else_all() {
    check(
        "shared x; shared y; shared z; focus z, x; main { }",
        expect![[r#"
        shared x = 0
        shared y = 0
        shared z = 0
        focus z, x
        main
    "#]],
    );
    check(
        "shared x; shared y; main { }",
        expect![[r#"
        shared x = 0
        shared y = 0
        focus x, y
        main
    "#]],
    );
}

#[test]
fn declarations_may_stand_in_any_order() {
    check(
        "main { f(x); } focus x; fn f(a) { g(); } fn g() { lock(m); } lock m; shared x;",
        expect![[r#"
            shared x = 0
            lock m
            focus x
            fn f(a#1)
              g()
            fn g()
              lock m
            main
              f(x)
        "#]],
    );
}

#[test]
fn operators_bind_as_in_c() {
    check(
        "shared x;
         main {
             x = 1 || 2 && 3 | 4 ^ 5 & 6 == 7 < 8 << 9 + 10 * 11;
             x = 1 * 2 + 3 << 4 > 5 != 6 & 7 ^ 8 | 9 && 10 || 11;
             x = 1 - 2 - 3 / 4 / 5 % 6;
             x = 1 < 2 < 3 >= 4 <= 5;
             x = -1 - -2 * !3 + !!4;
             x = (1 + 2) * (3 >> (4 - 5));
         }",
        expect![[r#"
            shared x = 0
            focus x
            main
              x = (1 Or (2 And (3 BitOr (4 BitXor (5 BitAnd (6 Equal (7 Less (8 ShiftLeft (9 Add (10 Multiply 11))))))))))
              x = ((((((((((1 Multiply 2) Add 3) ShiftLeft 4) Greater 5) NotEqual 6) BitAnd 7) BitXor 8) BitOr 9) And 10) Or 11)
              x = ((1 Subtract 2) Subtract (((3 Divide 4) Divide 5) Remainder 6))
              x = ((((1 Less 2) Less 3) GreaterEqual 4) LessEqual 5)
              x = (((Negate 1) Subtract ((Negate 2) Multiply (Not 3))) Add (Not (Not 4)))
              x = ((1 Add 2) Multiply (3 ShiftRight (4 Subtract 5)))
        "#]],
    );
}

#[test]
fn places_are_variables_locals_and_elements() {
    check(
        "shared x; shared a[4];
         main { let i = x; a[i] = a[a[i] + 1]; i = i + a[3]; x = i; }",
        expect![[r#"
            shared x = 0
            shared a[4] = 0
            focus x, a
            main
              i#1 = x
              a[i#1] = a[(a[i#1] Add 1)]
              i#1 = (i#1 Add a[3])
              x = i#1
        "#]],
    );
}

#[test]
fn branches_and_loops() {
    check(
        "shared x;
         main {
             if (x) { x = 1; }
             if (x) { x = 1; } else { x = 2; }
             if (x == 1) { skip; } else if (x == 2) { x = 3; } else { x = 4; }
             if (*) { x = 5; }
             while (x < 9) { if (x) { break; } continue; }
             for (i in 0..x) { x = i; }
             for (i in 0..=x) { i = i + 1; }
         }",
        expect![[r#"
            shared x = 0
            focus x
            main
              if x
                x = 1
              if x
                x = 1
              else
                x = 2
              if (x Equal 1)
                skip
              else
                if (x Equal 2)
                  x = 3
                else
                  x = 4
              if *
                x = 5
              while (x Less 9)
                if x
                  break
                continue
              for i#1 in 0..x
                x = i#1
              for i#2 in 0..=x
                i#2 = (i#2 Add 1)
        "#]],
    );
}

#[test]
fn functions_have_parameters_and_results() {
    check(
        "fn add(a, b) { return a + b; }
         fn none() { return; }
         main { let s = add(1, add(2, 3)); none(); add(s, s); return; }",
        expect![[r#"
            fn add(a#1, b#2)
              return (a#1 Add b#2)
            fn none()
              return
            main
              s#3 = add(1, add(2, 3))
              none()
              add(s#3, s#3)
              return
        "#]],
    );
}

#[test]
fn locks_conditions_and_blocks_that_are_atomic() {
    check(
        "shared x; lock m; lock n[2]; cond c;
         thread t {
             lock(m); unlock(m);
             lock(n[x]); unlock(n[x]);
             sync (n[1]) { wait(c, n[1]); }
             notify(c); notifyall(c);
             atomic { x = 1; }
             expect atomic { x = 2; }
         }",
        expect![[r#"
            shared x = 0
            lock m
            lock n[2]
            cond c
            focus x
            thread t
              lock m
              unlock m
              lock n[x]
              unlock n[x]
              sync n[1]
                wait c n[1]
              notify c
              notifyall c
              atomic
                x = 1
              expect atomic
                x = 2
        "#]],
    );
}

#[test]
fn single_events_that_read_and_write() {
    check(
        "shared x; shared a[2];
         main { let done = cas(x, 0, 1 + 1); let old = fetchadd(a[done], -1); x = old; }",
        expect![[r#"
            shared x = 0
            shared a[2] = 0
            focus x, a
            main
              done#1 = cas x 0 (1 Add 1)
              old#2 = fetchadd a[done#1] (Negate 1)
              x = old#2
        "#]],
    );
}

#[test]
fn assertions_and_assumptions() {
    check(
        "shared x; main { assert(x == 0); assume(x != 1); }",
        expect![[r#"
        shared x = 0
        focus x
        main
          assert (x Equal 0)
          assume (x NotEqual 1)
    "#]],
    );
}

#[test]
fn threads_get_copies_of_what_they_use_and_of_their_variable() {
    check(
        "shared x;
         main {
             let a = 1; let b = 2; let unused = 3;
             coforeach (i in 0..a) { x = b; }
             coforeach (i in a..=b) { let own = i; x = own; }
             cobegin { { x = a; } { let h = fork { x = b; }; join(h); } { } }
             let h = fork { x = a; };
         }",
        expect![[r#"
            shared x = 0
            focus x
            main
              a#1 = 1
              b#2 = 2
              unused#3 = 3
              coforeach i#4 in 0..a#1 copies [b#2, i#4]
                x = b#2
              coforeach i#5 in a#1..=b#2 copies [i#5]
                own#6 = i#5
                x = own#6
              cobegin
                thread copies [a#1]
                  x = a#1
                thread copies [b#2]
                  h#7 = fork copies [b#2]
                    x = b#2
                  join h#7
                thread copies []
              h#8 = fork copies [a#1]
                x = a#1
        "#]],
    );
}

#[test]
fn a_nested_thread_makes_its_parent_copy_too() {
    check(
        "shared x;
         fn f(p) {
             coforeach (i in 0..2) {
                 let q = p;
                 let h = fork { cobegin { { x = i + q + p; } } };
                 join(h);
             }
         }
         main { f(1); let h = fork { skip; }; let g = fork { join(h); }; join(g); }",
        expect![[r#"
            shared x = 0
            focus x
            fn f(p#1)
              coforeach i#2 in 0..2 copies [p#1, i#2]
                q#3 = p#1
                h#4 = fork copies [p#1, i#2, q#3]
                  cobegin
                    thread copies [p#1, i#2, q#3]
                      x = ((i#2 Add q#3) Add p#1)
                join h#4
            main
              f(1)
              h#5 = fork copies []
                skip
              g#6 = fork copies [h#5]
                join h#5
              join g#6
        "#]],
    );
}

#[test]
fn names_are_used_again_in_blocks_beside() {
    check(
        "main {
             if (1) { let a = 1; } else { let a = 2; }
             for (a in 0..2) { skip; }
             let a = 3;
             a = a + 1;
         }
         thread t { let a = 1; }",
        expect![[r#"
            thread t
              a#5 = 1
            main
              if 1
                a#1 = 1
              else
                a#2 = 2
              for a#3 in 0..2
                skip
              a#4 = 3
              a#4 = (a#4 Add 1)
        "#]],
    );
}

#[test]
fn comments_and_line_breaks_stand_anywhere() {
    check(
        "shared/**/x/* * / */;// shared y;\nmain{x=/* 1 */2//\n;}// the end",
        expect![[r#"
        shared x = 0
        focus x
        main
          x = 2
    "#]],
    );
}

#[test]
fn statements_know_their_first_and_last_token_and_blocks_theirs() {
    let text = "shared x;\nmain {\n    if (x) { x = 1; } else if (x < 2) { skip; }\n    let t = fork { x = 2; };\n}\n";
    let source = Source::new("a.rw", text);
    let program = program(text);
    let slices: Vec<String> = program
        .blocks
        .entries()
        .flat_map(|(id, block)| {
            let inside = block.inside.map(|(of, at)| (of.number(), at));
            let head = format!("{}: {:?} {}", id.number(), inside, source.slice(block.span));
            let statements = block.statements.iter().map(|it| source.slice(it.span).to_owned());
            std::iter::once(head)
                .chain(statements.map(|it| format!("    {it}")))
                .collect::<Vec<_>>()
        })
        .collect();
    expect![[r#"
        1: None {
            if (x) { x = 1; } else if (x < 2) { skip; }
            let t = fork { x = 2; };
        }
            if (x) { x = 1; } else if (x < 2) { skip; }
            let t = fork { x = 2; };
        2: Some((1, 0)) { x = 1; }
            x = 1;
        3: Some((1, 0)) if (x < 2) { skip; }
            if (x < 2) { skip; }
        4: Some((3, 0)) { skip; }
            skip;
        5: Some((1, 1)) { x = 2; }
            x = 2;"#]]
    .assert_eq(&slices.join("\n"));
}

#[test]
fn the_parts_of_an_else_if_are_one_statement_in_a_block() {
    let program = program("shared x; main { if (x) { } else if (x) { } else { x = 1; } }");
    let main = program.main.expect("there is a main");
    let StatementKind::If { otherwise: Some(otherwise), .. } =
        program.blocks[main].statements[0].kind
    else {
        panic!("the first statement is an if with an else");
    };
    let block = &program.blocks[otherwise];
    assert_eq!(block.statements.len(), 1);
    assert_eq!(block.span, block.statements[0].span);
    assert_eq!(block.inside, Some((main, 0)));
}

#[test]
fn right_uses_of_locks_and_locals_bring_no_warning() {
    let text = "shared x; lock m; lock n[2];
        fn help() { unlock(m); }
        main {
            lock(m); unlock(m); lock(m); help();
            lock(m); while (x) { unlock(m); lock(m); } unlock(m);
            sync (m) { unlock(m); lock(m); }
            sync (m) { skip; }
            if (x) { lock(m); } else { lock(m); }
            lock(n[0]); lock(n[1]); lock(n[x]); unlock(n[x]); lock(n[0]);
            sync (n[x]) { let h = fork { sync (n[x]) { lock(m); } }; join(h); }
            coforeach (i in 0..3) { i = i + 1; let own = i; own = 2; x = own; }
        }";
    assert_eq!(check_source(&Source::new("a.rw", text)).diagnostics, []);
}
