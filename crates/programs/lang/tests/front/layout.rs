//! The one layout.

use expect_test::{Expect, expect};
use reweave_lang::{Source, format};

#[track_caller]
fn check(text: &str, expected: Expect) {
    let laid_out = format(&Source::new("a.rw", text)).expect("the syntax is right");
    expected.assert_eq(&laid_out);
    let again = format(&Source::new("a.rw", &*laid_out)).expect("the layout has the same tokens");
    assert_eq!(again, laid_out);
}

#[test]
fn one_statement_a_line_and_four_spaces_a_block() {
    check(
        "shared x;main{x=1;if(x){x=2;}}",
        expect![[r#"
        shared x;

        main {
            x = 1;
            if (x) {
                x = 2;
            }
        }
    "#]],
    );
}

#[test]
fn operators_stand_apart_and_signs_do_not() {
    check(
        "main{let a=-1- -2*!(3)<<a[b+1]%- - 4;f(a,-b);assert(!!a);return(a);}",
        expect![[r#"
        main {
            let a = -1 - -2 * !(3) << a[b + 1] % - -4;
            f(a, -b);
            assert(!!a);
            return (a);
        }
    "#]],
    );
}

#[test]
fn every_statement_has_its_form() {
    check(
        "main{let t=fork{skip;};join ( t );lock ( m );unlock(m [ 1 ]);sync(m){wait(c,m);}notify(c);notifyall(c);
         atomic{}expect atomic{skip;}let a=cas(x,0,1);let b=fetchadd(y [0],1);if(*){}while(1){break;}
         for(i in 0 .. 3){continue;}coforeach(i in -1 ..= x+1){}cobegin{{}{skip;}}
         if(a){}else if(b){}else{}assume ( a );f ( );}",
        expect![[r#"
            main {
                let t = fork {
                    skip;
                };
                join(t);
                lock(m);
                unlock(m[1]);
                sync (m) {
                    wait(c, m);
                }
                notify(c);
                notifyall(c);
                atomic {}
                expect atomic {
                    skip;
                }
                let a = cas(x, 0, 1);
                let b = fetchadd(y[0], 1);
                if (*) {}
                while (1) {
                    break;
                }
                for (i in 0..3) {
                    continue;
                }
                coforeach (i in -1..=x + 1) {}
                cobegin {
                    {}
                    {
                        skip;
                    }
                }
                if (a) {} else if (b) {} else {}
                assume(a);
                f();
            }
        "#]],
    );
}

#[test]
fn declarations_stay_together_and_blocks_stand_apart() {
    check(
        "shared x;shared y;\n\n\n\nlock m;fn f(a,b){} thread t{}\nmain{}\n\n\n\nshared z;focus x,y;",
        expect![[r#"
            shared x;
            shared y;

            lock m;

            fn f(a, b) {}

            thread t {}

            main {}

            shared z;
            focus x, y;
        "#]],
    );
}

#[test]
fn one_blank_line_survives_between_statements_and_none_at_the_edges() {
    check(
        "main {\n\n\n  x = 1;\n\n\n\n  y = 2;\n  z = 3;\n\n}",
        expect![[r#"
        main {
            x = 1;

            y = 2;
            z = 3;
        }
    "#]],
    );
}

#[test]
fn parentheses_stay() {
    check(
        "main { x = ((1)) + (2 * 3); }",
        expect![[r#"
        main {
            x = ((1)) + (2 * 3);
        }
    "#]],
    );
}

#[test]
fn comments_keep_their_place() {
    check(
        "// first\n\nshared x; // behind x\n/* before t */ thread t { // behind the brace\n   // alone\n x = 1; /* behind */\n\n   x /* inside */ = 2;\n /* before */ x = 3;\n  // last\n}\n// very last",
        expect![[r#"
            // first

            shared x; // behind x

            /* before t */ thread t { // behind the brace
                // alone
                x = 1; /* behind */

                x /* inside */ = 2;
                /* before */ x = 3;
                // last
            }
            // very last
        "#]],
    );
}

#[test]
fn a_comment_that_ends_a_line_in_a_statement_indents_the_rest() {
    check(
        "main { x = 1 + // one\n 2; if (x) // why\n { } // so\n else { f(1, // a\n // b\n 2); } }",
        expect![[r#"
            main {
                x = 1 + // one
                    2;
                if (x) // why
                {} // so
                else {
                    f(1, // a
                        // b
                        2);
                }
            }
        "#]],
    );
}

#[test]
fn the_blank_line_before_a_block_goes_before_its_comments() {
    check(
        "shared x; // x\n// about t\n// more\nthread t {}\n// about u\n\nthread u {}",
        expect![[r#"
            shared x; // x

            // about t
            // more
            thread t {}
            // about u

            thread u {}
        "#]],
    );
}

#[test]
fn lines_of_a_comment_stay_as_they_are_but_for_their_ends() {
    check(
        "main {\n/* one  \n     two\t\n */\nskip; }",
        expect![[r#"
        main {
            /* one
             two
         */
            skip;
        }
    "#]],
    );
}

#[test]
fn line_ends_of_other_systems_become_ours() {
    check(
        "shared x;\r\n\r\n// c\r\nmain {\r\n}\r\n",
        expect![[r#"
        shared x;

        // c
        main {}
    "#]],
    );
}

#[test]
fn nothing_stays_nothing() {
    check("", expect![[""]]);
    check(" \n\n ", expect![[""]]);
    check("\u{feff}", expect![[""]]);
    check(
        "// only this",
        expect![[r#"
        // only this
    "#]],
    );
}

#[test]
fn names_need_not_be_known() {
    check(
        "main { whatever = nothing(1); }",
        expect![[r#"
        main {
            whatever = nothing(1);
        }
    "#]],
    );
}

#[test]
fn what_does_not_follow_the_grammar_is_refused() {
    let refused = format(&Source::new("a.rw", "main { x = ; }"));
    assert_eq!(refused.map_err(|errors| errors.len()), Err(1));
}
