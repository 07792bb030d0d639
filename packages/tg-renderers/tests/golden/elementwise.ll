define void @kernel(ptr %buffers, ptr %vals, i64 %begin, i64 %end) nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" {
entry:
  %v1 = getelementptr ptr, ptr %buffers, i64 0
  %v2 = load ptr, ptr %v1, align 8
  %v5 = getelementptr ptr, ptr %buffers, i64 1
  %v6 = load ptr, ptr %v5, align 8
  %v9 = getelementptr ptr, ptr %buffers, i64 2
  %v10 = load ptr, ptr %v9, align 8
  br label %start
start:
  br label %loop1
loop1:
  %v3 = phi i64 [ 0, %start ], [ %v15, %loop1 ]
  %v4 = mul i64 %v3, 16
  %v7 = getelementptr float, ptr %v6, i64 %v4
  %v8 = load <16 x float>, ptr %v7, align 4
  %v11 = getelementptr float, ptr %v10, i64 %v4
  %v12 = load <16 x float>, ptr %v11, align 4
  %v13 = fadd <16 x float> %v8, %v12
  %v14 = getelementptr float, ptr %v2, i64 %v4
  store <16 x float> %v13, ptr %v14, align 4
  %v15 = add nsw i64 %v3, 1
  %v16 = icmp slt i64 %v15, 3
  br i1 %v16, label %loop1, label %done2
done2:
  ret void
}
