"""The bundles of one step of a grid, from the text of a schedule as libtpu writes it, cut down to what tells loops."""

from __future__ import annotations

import pytest

from mosaic_grid.llo_step import step_bundles

COUNTED = "$region0: #{f.1}\n  %s9 = sphi 0, %s8 /* iteration index, stage = 0 */\n"

SCHEDULE = """= control target key start
LB: loop body
= control target key end

     0   :  { %s1 = sld [smem:[#allocation0]] } /* Start region 0 :: Start region 5 */
   0x1   :  { %12 = sbr.rel (%p1) target = $region9 } /* Start/End empty region 4 */
   0x2 LB: > { %s2 = sadd.s32 1, %s9 /* iteration index, stage = 1 */ } /* Start region 7 :: Start region 74 */
   0x3   : > { %302 = dma.hbm_to_vmem %s3 /*
base_bounds: (128, 8)
0x4   : this is a comment
 */ }
   0x4 LB: >> { %s4 = sadd.s32 1, %s3 } /* Start region 20 :: End region 74 */
   0x5   : >> { %13 = sbr.rel (!%p3) target = $region20 }
   0x6   :  {} /* End region 20 */
   0x7   : > { %14 = sbr.rel (%p4) target = $region30 } /* Start region 29 */
   0x8   :  {} /* End region 29 */
   0x9 PF: > { %15 = sbr.rel (!%p5) target = $region74  ;;  %s7 = smov %s2 /* copy */ } /* Start/End empty region 30 */
   0xa   :  {}
   0xb   :  {} /* End region 7 */
   0xc   :  { %200 = vsyncpa [#allocation4], 1 }
   0xd LB: > { %s5 = sadd.s32 1, %s6 } /* Start region 40 */
   0xe   : > { %16 = sbr.rel (!%p6) target = $region40 }
   0xf   :  {} /* End region 40 :: End region 0 :: End region 5 */
  0x10 PF:  {} /* exit bundle: %f.1 = custom-call() */
"""
TOTAL = 17


def test_the_loop_over_the_grid_is_a_step() -> None:
    """All from the first bundle of the loop to the delay of its branch back, with what is in it, and no other loop."""
    assert step_bundles(COUNTED, SCHEDULE, TOTAL) == 10


def test_a_grid_without_a_loop_is_one_step() -> None:
    """Then all of the schedule is the step, whatever loops the kernel has."""
    assert step_bundles("$region0: #{f.1}\n", SCHEDULE.replace("iteration", "another"), TOTAL) == TOTAL


@pytest.mark.parametrize(
    ("schedule", "total"),
    [
        ("", TOTAL),
        (SCHEDULE, TOTAL + 1),
        (SCHEDULE.replace("iteration index", "another"), TOTAL),
        (SCHEDULE.replace("region74", "region75"), TOTAL),
        (SCHEDULE.replace("%s5 =", "%s5 = /* iteration index, stage = 0 */"), TOTAL),
        (SCHEDULE.replace("   0x7", "   0x9"), TOTAL),
    ],
    ids=["none", "not all of it", "no counter", "no branch back", "two loops", "a line is missing"],
)
def test_what_is_not_as_expected_is_not_known(schedule: str, total: int) -> None:
    """Text that reads in another way than libtpu's gives no number."""
    assert step_bundles(COUNTED, schedule, total) is None
