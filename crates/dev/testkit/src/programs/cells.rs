//! Cells: the plain memory that generated programs share, and how they access it.
//!
//! In the code, `$` is the cell's number and `k` a small number. What touches leave behind does not
//! depend on their order, so a program prints the same in every schedule.

/// One kind of shared memory.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) declare: &'static str,
    pub(super) touch: &'static str,
    /// An expression that reads the whole cell.
    pub(super) digest: &'static str,
    /// Whether a touch may stand in a handler of a signal, whatever that interrupts.
    pub(super) is_safe_in_handlers: bool,
}

/// Every kind of cell.
#[rustfmt::skip]
pub(super) const CELLS: &[Cell] = &[
    Cell {
        declare: "static long cell_$;",
        touch: "cell_$ += k;",
        digest: "cell_$",
        is_safe_in_handlers: true,
    },
    Cell {
        declare: "static struct { unsigned a : 5, b : 11; char c; short d; double e; } cell_$;",
        touch: "cell_$.a += k; cell_$.b += k; cell_$.c ^= k; cell_$.d += cell_$.a & 0; cell_$.e += k;",
        digest: "cell_$.a + cell_$.b + cell_$.c + cell_$.d + (long)cell_$.e",
        is_safe_in_handlers: true,
    },
    Cell {
        declare: "static unsigned char cell_$[4096];",
        touch: "{ unsigned char v = cell_$[4000] + k; memset(cell_$, v, sizeof cell_$); }",
        digest: "cell_$[17] + cell_$[4000]",
        is_safe_in_handlers: true,
    },
    Cell {
        declare: "static unsigned char cell_$[1000], other_$[1000];",
        touch: "cell_$[999] += k; memcpy(other_$, cell_$, sizeof cell_$); memmove(cell_$ + 1, other_$ + 1, 900);",
        digest: "other_$[999] + memcmp(other_$, cell_$, 1000)",
        is_safe_in_handlers: true,
    },
    Cell {
        declare: "static char cell_$[64];",
        touch: "{ long v = atol(cell_$); snprintf(cell_$, sizeof cell_$, \"%ld and %s\", v + k, \"text\"); }",
        digest: "strtol(cell_$, 0, 10) + (long)strlen(cell_$) * 0",
        is_safe_in_handlers: false,
    },
    Cell {
        declare: "static char *cell_$;",
        touch: "{ char text[32]; snprintf(text, sizeof text, \"%d\", (cell_$ ? atoi(cell_$) : 0) + k); free(cell_$); cell_$ = strdup(text); }",
        digest: "(cell_$ ? atoi(cell_$) : 0)",
        is_safe_in_handlers: false,
    },
    Cell {
        declare: "static long *cell_$;",
        touch: "{ long *v = (long *)malloc(5 * sizeof *v); memset(v, 0, 5 * sizeof *v); if (cell_$) memcpy(v, cell_$, 5 * sizeof *v); free(cell_$); v[3] += k; cell_$ = v; }",
        digest: "(cell_$ ? cell_$[3] : 0)",
        is_safe_in_handlers: false,
    },
    Cell {
        declare: "static int cell_$[9]; static int compare_$(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }",
        touch: "for (int i = 0; i < 9; i++) cell_$[i] = cell_$[i] * 1 + k; qsort(cell_$, 9, sizeof *cell_$, compare_$);",
        digest: "cell_$[0] + cell_$[8]",
        is_safe_in_handlers: false,
    },
    Cell {
        declare: "struct node_$ { struct node_$ *next; int value; }; static struct node_$ *cell_$; static long sum_$(void) { long s = 0; for (struct node_$ *v = cell_$; v; v = v->next) s += v->value; return s; }",
        touch: "{ struct node_$ *v = (struct node_$ *)malloc(sizeof *v); v->value = k; v->next = cell_$; cell_$ = v; if (v->next && v->next->next) { struct node_$ *old = v->next; v->value += old->value; v->next = old->next; free(old); } }",
        digest: "sum_$()",
        is_safe_in_handlers: false,
    },
    Cell {
        declare: "static struct { struct tm tm; char text[40]; long count; } cell_$;",
        touch: "{ time_t t = 86400; cell_$.count += k; gmtime_r(&t, &cell_$.tm); strftime(cell_$.text, sizeof cell_$.text, \"%Y-%m-%d\", &cell_$.tm); strncat(cell_$.text, \"!\", 3); }",
        digest: "cell_$.count + cell_$.text[0] * 0",
        is_safe_in_handlers: false,
    },
];
