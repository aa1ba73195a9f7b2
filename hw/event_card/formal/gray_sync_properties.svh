// A count that goes on by one changes one bit on its way; what comes out is what
// went in. (Here both sides have one clock: what two clocks do is simulated.)

reg f_is_first = 1'b1;
reg [BITS-1:0] f_gray, f_count_1, f_count_2, f_count_3, f_count_4;
reg [2:0] f_age;
wire [BITS-1:0] f_changed = gray ^ f_gray;
always @(posedge from_clk) begin
  f_is_first <= 1'b0;
  f_gray <= gray;
  f_count_1 <= count_in;
  f_count_2 <= f_count_1;
  f_count_3 <= f_count_2;
  f_count_4 <= f_count_3;
  if (!from_rst_n) f_age <= 3'd0;
  else if (f_age != 3'd5) f_age <= f_age + 3'd1;
end
`ifdef FORMAL_ALONE
always @(*) begin
  if (f_is_first) assume (!from_rst_n);
  assume (from_rst_n == to_rst_n);
  if (!f_is_first) assume (count_in == f_count_1 || count_in == f_count_1 + 1'b1);
end
`endif
always @(posedge from_clk)
  if (from_rst_n && !f_is_first) begin
    gray_changes_one_bit:
    assert (f_age < 3'd2 || (f_changed & (f_changed - 1'b1)) == {BITS{1'b0}});
    gray_gives_what_it_was_given: assert (f_age < 3'd4 || count_out == f_count_4);
  end
